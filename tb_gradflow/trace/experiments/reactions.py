"""Whether an op's output depends on its input, and the loss with it: the input is moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.record.experiments import SPACINGS, Reaction
from tb_gradflow.trace.experiments.loss_alone import MOST_OF_LOSS, LossAlone, Suspected
from tb_gradflow.trace.experiments.moves import Ask, Clock, Moves

_MOST_ELEMENTS = 1 << 22
"""Larger tensors are not moved."""


def reactions(loss: LossAlone, suspects: Sequence[Suspected], clock: Clock) -> Iterator[Reaction]:
    """Those of some ops, whose inlets the losses were made with, as long as there is time."""
    before = loss(MOST_OF_LOSS)
    given, computed = dict(loss.given), dict(loss.computed)
    for number, each in enumerate(suspects):
        if clock.is_over:
            return
        value = given.get(number)
        if (
            value is not None
            and np.isfinite(before.get(each.target, np.nan))
            and 0 < int(tf.size(value)) <= _MOST_ELEMENTS
        ):
            ask = _asking(loss, number, each, value, computed[number], before, clock)
            yield from Moves(value, ask, clock).until_reaction([0])


def _asking(
    loss: LossAlone,
    number: int,
    suspect: Suspected,
    value: Any,
    computed: Sequence[Any],
    before: Mapping[int, float],
    clock: Clock,
) -> Ask[Reaction]:
    inlet = suspect.inlet

    def ask(moved: Any, size: float, amount: float) -> Mapping[int, Reaction]:
        inlet.by.write(moved - value)
        try:
            after = loss(clock.left)
        finally:
            inlet.stay()
        changed, change = _difference(computed, loss.computed[number])
        if not np.isfinite(after.get(suspect.target, np.nan)):
            return {}
        return {
            0: Reaction(
                suspect.op,
                suspect.target,
                size,
                amount,
                changed,
                change,
                before[suspect.target],
                after[suspect.target],
                0.0,
            )
        }

    return ask


def _difference(before: Sequence[Any], after: Sequence[Any]) -> tuple[float, float]:
    """Which share of the elements differs, and by how much."""
    differ, count, change = 0, 0, 0.0
    for one, other in zip(before, after, strict=True):
        first, second = (np.asarray(each).astype(np.float64) for each in (one, other))
        if first.shape != second.shape:
            return 1.0, 0.0
        with np.errstate(invalid="ignore"):  # infinity minus infinity
            apart = np.abs(second - first)
        limit = SPACINGS * np.max(np.abs(first), initial=0.0, where=np.isfinite(first))
        same = (apart <= limit) | (first == second) | (np.isnan(first) & np.isnan(second))
        differ += int(np.count_nonzero(~same))
        count += first.size
        change = max(change, float(np.max(apart, initial=0.0, where=np.isfinite(apart))))
    return differ / max(count, 1), change
