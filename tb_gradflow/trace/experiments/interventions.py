"""What changes a gradient that is not finite, or too small: the step runs once more, with its gradients, after a tensor
that goes into an op was changed, or rows of the batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.analyse.step.measured import VANISHING_BELOW
from tb_gradflow.record.experiments import ChangedGradient, Intervention
from tb_gradflow.record.values import MOST_ROWS, StepValues
from tb_gradflow.trace.experiments.loss_alone import MOST_OF_LOSS, LossAlone, Pair, Suspected
from tb_gradflow.trace.experiments.moves import Clock

_CHANGES = ((1.0, 1e-6), (1.0, 1e-3), (0.999, 0.0), (0.1, 0.0), (0.01, 0.0), (1.0, 2.0), (1.0, -2.0))
"""By what a tensor is multiplied, and what is added to it then, in parts of its largest element: first what changes the
least."""

_LARGER = 10.0
"""A gradient that grows by a smaller factor is still as small."""

_USABLE = 100 * VANISHING_BELOW
"""One that is smaller than this afterwards still says nothing."""

Good = Callable[[ChangedGradient], bool]


def is_finite(changed: ChangedGradient) -> bool:
    return not changed.broken


def is_larger(changed: ChangedGradient) -> bool:
    return not changed.broken and changed.after > max(_LARGER * changed.before, _USABLE)


class Interventions:
    """Those in one step.

    Args:
        loss: Its losses, with the gradients in question.
        suspects: The ops whose inputs it was made with.
        is_good: What an intervention is to make of a gradient.
        seconds: The time for them, once the loss is known.
    """

    def __init__(self, loss: LossAlone, suspects: Sequence[Suspected], is_good: Good, seconds: float) -> None:
        self._loss = loss
        self._suspects = suspects
        self._is_good = is_good
        self._before = loss(MOST_OF_LOSS)  # which TensorFlow has to prepare
        self._clock = Clock(seconds, 0.0)
        self._gradients = dict(loss.gradients)
        self._given = dict(loss.given)

    def of_tensors(self) -> Iterator[Intervention]:
        """For each op, the least change of a tensor that goes into it which makes a gradient good."""
        done: set[int] = set()
        for number, each in enumerate(self._suspects):
            value = self._given.get(number)
            if each.op not in done and value is not None and _is_all_finite(value):
                found = next(filter(None, self._of_tensor(each, value)), None)
                if found is not None:
                    done.add(each.op)
                    yield found

    def _of_tensor(self, suspect: Suspected, value: Any) -> Iterator[Intervention | None]:
        size = float(tf.reduce_max(tf.abs(value))) or 1.0
        for factor, part in _CHANGES:
            if self._clock.is_over:
                return
            by = value * tf.cast(factor - 1.0, value.dtype) + tf.cast(part * size, value.dtype)
            suspect.inlet.by.write(by)
            try:
                after = self._loss(self._clock.left)
            except tf.errors.OpError:  # an index is out of range, or a loop does not end
                continue
            finally:
                suspect.inlet.stay()
            tensor = (suspect.op, suspect.inlet.number)
            first = Intervention(suspect.target, *tensor, factor, part * size, (), -1, None, None, ())
            yield self._compared(first, after, self._loss.gradients)

    def of_rows(self, known: StepValues, without: Callable[[Change], LossAlone | None]) -> Iterator[Intervention]:
        """What becomes of the gradients without the rows of the batch in which something is not finite. `without`
        returns the losses and gradients of the step whose batch was changed."""
        rows = broken_rows(known)
        copied = next((row for row in range(known.batch) if row not in rows), -1)
        if rows and copied >= 0:
            loss = without(_with_copies(known.batch, rows, copied))
            if loss is None:
                return
            after = loss(MOST_OF_LOSS)
            for target in sorted({target for target, _ in self._gradients}):
                first = Intervention(target, -1, -1, 1.0, 0.0, rows, copied, None, None, ())
                found = self._compared(first, after, loss.gradients)
                yield from [] if found is None else [found]

    def _compared(
        self, first: Intervention, after: Mapping[int, float], changed: Mapping[Pair, Any]
    ) -> Intervention | None:
        """The intervention with what it does; `None` if it is good for no gradient."""
        target = first.target
        found = (
            ChangedGradient(variable, *_described(gradient), *_described(changed[of, variable]))
            for (of, variable), gradient in self._gradients.items()
            if of == target and (of, variable) in changed
        )
        good = tuple(filter(self._is_good, found))
        one, other = (_finite(each.get(target)) for each in (self._before, after))
        # What breaks the loss is no remedy.
        return replace(first, before=one, after=other, gradients=good) if good and other is not None else None


Change = Callable[[Any], Any]
"""Returns another tensor in the place of one that the step was given."""


def broken_rows(known: StepValues) -> tuple[int, ...]:
    """The rows of the batch in which a value or a gradient is not finite; none if that is true of most of them."""
    listed = [each.rows for each in known.values if each.rows is not None]
    listed += [each.rows for each in known.gradient_rows]
    some = [each for each in listed if each.count <= MOST_ROWS and each.count < known.batch]
    # A sum over the rows, such as a gradient of weights of another size, may be broken in all of its own.
    rows = {row for each in some for row in each.first}
    return tuple(sorted(rows)) if 2 * len(rows) <= known.batch else ()


def _with_copies(batch: int, rows: Collection[int], copied: int) -> Change:
    """Replaces rows of a tensor by a copy of another one, if it has those of the batch."""
    places = [copied if row in rows else row for row in range(batch)]

    def replaced(tensor: Any) -> Any:
        is_of_batch = tensor.dtype not in (tf.resource, tf.variant) and tensor.shape[:1] == [batch]
        return tf.gather(tensor, places) if is_of_batch else tensor

    return replaced


def _is_all_finite(value: Any) -> bool:
    return bool(tf.size(value)) and bool(tf.reduce_all(tf.math.is_finite(value)))


def _described(gradient: Any) -> tuple[float, int]:
    """The largest finite magnitude, and how many elements are not finite."""
    value = gradient.numpy()
    is_known = np.isfinite(value)
    return float(np.max(np.abs(value), initial=0.0, where=is_known)), int(np.count_nonzero(~is_known))


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
