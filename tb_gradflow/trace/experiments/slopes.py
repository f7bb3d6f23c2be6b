"""Whether the gradient of a variable predicts how the loss reacts when it is moved a little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.record.experiments import Along, Slope
from tb_gradflow.trace.experiments.loss_alone import MOST_OF_LOSS, LastStep, LossAlone
from tb_gradflow.trace.experiments.moves import Clock

_PART = 0.01
"""By which part of the largest element a variable is moved."""

_MOST_ELEMENTS = 1 << 24
"""Larger variables are not moved."""


def slopes(
    loss: LossAlone,
    graded: LossAlone,
    step: LastStep,
    numbers: Mapping[int, int],
    first: tuple[Mapping[int, float], Mapping[int, float]],
    ways: Sequence[Along],
    seconds: float,
    parts: Sequence[float] = (_PART,),
) -> Iterator[Slope]:
    """Those of the variables of which `graded` computes the gradients, as long as there is time.

    Args:
        loss: The losses alone.
        graded: The same with the gradients.
        step: The step.
        numbers: Which argument a variable is.
        first: The losses, computed twice.
        ways: The directions.
        seconds: The time for it, once the gradients are known.
        parts: How far: see `_PART`.
    """
    graded(MOST_OF_LOSS)
    clock = Clock(seconds, 0.0)
    before, again = first
    try:
        for (target, variable), gradient in graded.gradients.items():
            number = numbers.get(variable, -1)
            value = step.values.get(number)
            if value is None or value.shape != gradient.shape or not 0 < int(tf.size(value)) <= _MOST_ELEMENTS:
                continue
            slope, known = gradient.numpy().astype(np.float64), value.numpy().astype(np.float64)
            size = float(np.max(np.abs(known)))
            for along in ways:
                direction = _direction(along, slope)
                for part in parts if direction is not None else ():
                    if clock.is_over:
                        return
                    amount = part * (size or 1.0)
                    moved = [tf.constant(known + way * amount * direction, value.dtype) for way in (1.0, -1.0)]
                    ahead, behind = (loss(clock.left, {number: each}).get(target, np.nan) for each in moved)
                    # What a type with few digits has made of it.
                    apart = (moved[0].numpy().astype(np.float64) - moved[1].numpy().astype(np.float64)) / 2
                    predicted = float(np.sum(slope * apart))
                    if np.isfinite([before[target], again[target], ahead, behind, predicted]).all():
                        losses = (before[target], again[target], ahead, behind)
                        yield Slope(target, variable, along, size, amount, *losses, predicted)
    finally:
        loss.put_back()


def _direction(along: Along, gradient: Any) -> Any:
    """One along which no element moves by more than one; `None` if there is none."""
    random = np.random.default_rng(0).choice([-1.0, 1.0], gradient.shape)
    largest = float(np.max(np.abs(gradient)))
    if along == "random":
        return random
    return gradient / largest if 0 < largest < np.inf else None
