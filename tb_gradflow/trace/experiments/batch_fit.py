"""Whether a model can learn one batch: the same batch for some steps, on copies, with the program's own optimizer, and
with Adam at several rates. What does it learn, and is it the inputs that it learns from?"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.record.graph import LEARNED
from tb_gradflow.record.schema import BatchChange, BatchFit, Descent
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.experiments.training import Training
from tb_gradflow.trace.protection.foreign import faults

STEPS = 50

MOST_SECONDS = 20.0
"""The maximum time for all of it."""

_RATES = (1e-3, 1e-2, 1e-1)

_LITTLE = 0.9
"""If more of the loss is left, the targets are changed, to see why."""


def batch_fit_of(training: Training, step: int, seconds: float = MOST_SECONDS) -> BatchFit | None:
    """What comes out; `None` if that cannot be known, or not in that time."""
    if len(training.trace.targets) != 1 or 0 not in training.losses:
        return None  # what one loss gains, another one loses
    try:
        descents = tuple(_descents(training, time.monotonic() + seconds))
    except NotRepeatable:
        return None
    except faults():  # with other weights, the step may raise
        return None
    rows = {int(each.shape[0]) for each in training.inputs if each.shape.rank}
    return BatchFit(step, rows.pop() if len(rows) == 1 else -1, descents)


def _descents(training: Training, until: float) -> Iterator[Descent]:
    own = None
    left = 1.0
    has_own = training.descended is None
    for found in _tried(training, [*([None] * has_own), *_RATES], until):
        yield found
        if found.by == "own":
            own = found
            continue
        left = min(left, found.left)
        if left <= LEARNED:
            break
    if (change := _alike(training)) is not None:
        alike = _tried(training.with_batch(change), _RATES, until, "inputs_alike")
        if left > LEARNED:
            yield from alike
        else:
            with contextlib.suppress(NotRepeatable):  # what is known by now does not depend on it
                yield from alike
    if own is not None and own.left > _LITTLE and (change := _scaled(training)) is not None:
        yield from _tried(training.with_batch(change), [None], until, "targets_scaled")


def _tried(
    training: Training, rates: Sequence[float | None], until: float, changed: BatchChange = "nothing"
) -> Iterator[Descent]:
    for rate, losses in zip(rates, training.descents(STEPS, rates, until), strict=False):
        known = tuple(each if np.isfinite(each) else None for each in losses)
        yield Descent("own" if rate is None else "adam", rate, changed, known)


def _alike(training: Training) -> Callable[[Any], Any] | None:
    """Gives each row of the batch the inputs of the first one; `None` if it is not known which tensors they are."""
    inputs = training.inputs
    if not inputs or any(each.shape.rank is None or each.shape.rank < 1 or each.shape[0] < 2 for each in inputs):
        return None
    if any(_is_same(one, other) for one in inputs for other in training.labels):
        return None  # as in an autoencoder

    def change(tensor: Any) -> Any:
        if any(_is_same(tensor, each) for each in inputs):
            return tf.repeat(tensor[:1], tensor.shape[0], axis=0)
        return tensor

    return change


def _scaled(training: Training) -> Callable[[Any], Any] | None:
    """Brings the targets to a mean of zero and a standard deviation of one, if they are numbers of any size."""
    if len(training.labels) != 1 or any(_is_same(each, training.labels[0]) for each in training.inputs):
        return None
    [labels] = training.labels
    if not labels.dtype.is_floating or not _LARGE < float(tf.reduce_max(tf.abs(labels))) < np.inf:
        return None

    def change(tensor: Any) -> Any:
        if not _is_same(tensor, labels):
            return tensor
        spread = tf.math.reduce_std(labels)
        return (labels - tf.reduce_mean(labels)) / tf.where(spread > 0, spread, tf.ones_like(spread))

    return change


_LARGE = 10.0
"""Targets that are nowhere larger need no other unit."""


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if not isinstance(one, tf.Tensor) or one.dtype != other.dtype or one.shape != other.shape:
        return False
    return one.dtype not in (tf.resource, tf.variant) and bool(tf.reduce_all(one == other))
