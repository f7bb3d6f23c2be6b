"""Whether a loss reacts to a variable that gets no gradient: the variable is moved, and the loss computed again, from
the batch that the step had and with the same random numbers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.python.eager import record

from tb_gradflow.record.experiments import Influence
from tb_gradflow.record.schema import GRADIENT_STATISTICS, Trace
from tb_gradflow.trace.engine.additions import unobserved
from tb_gradflow.trace.engine.copies import copied
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.experiments.loss_alone import LastStep, Loss, LossAlone
from tb_gradflow.trace.graph.variables import Variables

MOST_SECONDS = 1.0
"""How long the variables of a step are moved, unless its loss takes longer; what is not moved by then stays unknown."""

_MOST_OF_LOSS = 10.0
"""Seconds that a loss may take."""

_MOST_ELEMENTS = 1 << 24
"""Larger variables are not moved."""

_TOLERANCE = 1e-3
"""A loss that is computed again is the same one if it differs by a smaller part: it is not compiled in the same way."""

_MOST_TIMES = 3
"""After how many steps of a training variables are moved, each time others."""

_MOST_STEPS = 50
"""In how many recorded steps such variables are looked for."""

_PARTS = (0.1, 1.0, 10.0)
"""By which parts of its size a variable is moved, until the loss reacts."""

_SMALL_PARTS = (1e-3, 1e-2)
"""By which it is moved in addition, if the loss reacts to the first of those."""

_LARGEST = GRADIENT_STATISTICS.index("max_abs")
_NONFINITE = [GRADIENT_STATISTICS.index(column) for column in ("nan_count", "inf_count")]

Pairs = Mapping[int, Sequence[int]]
"""Variables, each with targets, by their numbers."""


def in_question(trace: Trace, gradients: npt.NDArray[np.float32]) -> dict[int, list[int]]:
    """The variables of a step that get no gradient, or one of zero, each with the targets for which it is so: those
    that were requested, and trainable ones that no target was differentiated by. First one of each layer."""
    # Not those with a small one: each attention layer has a bias whose gradient is rounding noise.
    asked = {entry.variable for entry in trace.variable_gradients if entry.outcome != "not_asked"}
    found: dict[int, list[int]] = {}
    for entry in trace.variable_gradients:
        row = None if entry.row is None else gradients[entry.row]
        is_zero = row is not None and row[_LARGEST] == 0 and not np.any(row[_NONFINITE])
        is_left_out = entry.variable not in asked and trace.variables[entry.variable].trainable
        if is_left_out or entry.outcome == "none" or (entry.outcome == "value" and is_zero):
            found.setdefault(entry.variable, []).append(entry.target)
    layers = Counter[str]()
    turns: dict[int, int] = {}
    for variable in found:
        layer = trace.variables[variable].name.rpartition("/")[0]
        turns[variable] = layers[layer]
        layers[layer] += bool(layer)
    return {variable: found[variable] for variable in sorted(found, key=turns.__getitem__)}


class Questions:
    """The variables of a training that are moved, each once."""

    def __init__(self) -> None:
        self._moved: set[str] = set()
        self._times = 0
        self._steps = 0

    @property
    def are_over(self) -> bool:
        """Whether no more are moved."""
        return self._times == _MOST_TIMES or self._steps == _MOST_STEPS

    def new(self, trace: Trace, gradients: npt.NDArray[np.float32]) -> Pairs:
        """Those of a recorded step that have not been moved."""
        if self.are_over:
            return {}
        self._steps += 1
        found = in_question(trace, gradients)
        new = {each: targets for each, targets in found.items() if trace.variables[each].name not in self._moved}
        self._times += bool(new)
        self._moved.update(trace.variables[each].name for each in new)
        return new


def influences(
    pairs: Pairs,
    losses: Mapping[int, Loss],
    variables: Variables,
    step: Callable[[], LastStep],
    was: Mapping[int, float],
) -> dict[str, Any]:
    """What is measured in addition of a step, if variables are moved.

    Args:
        pairs: The variables.
        losses: Those of the step that can be computed again, by target.
        variables: Those of the trace.
        step: Returns the step.
        was: The losses in the step itself.
    """
    wanted = {each: own for each, listed in pairs.items() if (own := [target for target in listed if target in losses])}
    found: list[Influence] = []
    reason = ""
    try:
        if wanted:
            # Whatever the user's tapes and callbacks see is part of the training.
            with unobserved(), record.stop_recording():
                last = step()
                with copied(last.function, last.args, last.values) as copies:
                    loss = LossAlone(last, losses, copies)
                    found.extend(_all(loss, wanted, last, last.numbers(variables), was))
    except NotRepeatable as error:
        reason = str(error)
    except Exception as fault:  # the training goes on, and so does its recording
        reason = f"{type(fault).__name__}: {fault}"
    return {"influences": tuple(found), "not_moved": reason}


def _all(
    loss: LossAlone, pairs: Pairs, step: LastStep, numbers: Mapping[int, int], was: Mapping[int, float]
) -> Iterator[Influence]:
    until = time.monotonic() + MOST_SECONDS
    compiled, began = loss(_MOST_OF_LOSS), time.monotonic()
    first = compiled, loss(_MOST_OF_LOSS)
    clock = _Clock(until, time.monotonic() - began)
    same = [
        target for target, value in first[0].items() if loss.draws.are_made or _is_same(value, was.get(target, np.nan))
    ]
    if not same:
        raise NotRepeatable("its loss would be another one")
    for variable, targets in pairs.items():
        value = step.values.get(numbers.get(variable, -1))
        known = [target for target in targets if target in same and np.isfinite(first[0][target])]
        if known and value is not None and value.dtype.is_floating and 0 < int(tf.size(value)) <= _MOST_ELEMENTS:
            moves = _Moves(loss, variable, numbers[variable], value, first, clock)
            # Other random numbers than in the step, or a part that is held, may hide what the loss depends on.
            is_sure = not loss.draws.are_made and not loss.is_held
            yield from (each for each in moves.until_reaction(known) if each.reacts or is_sure)
        if clock.is_over:
            return


def _is_same(again: float, was: float) -> bool:
    return abs(again - was) <= _TOLERANCE * abs(was) + 1e-7


def _directions(shape: Sequence[int]) -> list[npt.NDArray[np.float64]]:
    """Ways to move the elements of a variable, each by one at most. The same amount everywhere would be an offset,
    which a softmax or a normalisation takes out."""
    size = int(np.prod(shape))
    if size == 1:
        return [np.ones(shape), -np.ones(shape)]
    signs = np.where(np.arange(size) % 2, -1.0, 1.0).reshape(shape)
    lengths = np.random.default_rng(0).uniform(-1.0, 1.0, shape)
    return [signs, lengths / np.max(np.abs(lengths)), -signs, -lengths / np.max(np.abs(lengths))]


class _Clock:
    """The time for the moves of a step.

    Args:
        until: When it is over.
        took: How long the loss takes; there is time for one in any case.
    """

    def __init__(self, until: float, took: float) -> None:
        self._until = max(until, time.monotonic() + took)
        self._took = took

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._until

    @property
    def left(self) -> float:
        """The seconds that the loss may take now: some more than there are, because a loss that is not needed to its
        end is cancelled, and TensorFlow prints a line then."""
        return max(self._until - time.monotonic(), 0.0) + 5.0 * self._took + 0.1


class _Moves:
    """One variable is moved.

    Args:
        loss: The losses.
        variable: Its number.
        number: The number of the argument that it is.
        value: Its value.
        first: The losses with this value, twice.
        clock: The time for it.
    """

    def __init__(
        self,
        loss: LossAlone,
        variable: int,
        number: int,
        value: Any,
        first: tuple[Mapping[int, float], Mapping[int, float]],
        clock: _Clock,
    ) -> None:
        self._loss, self._variable, self._number = loss, variable, number
        self._first = first
        self._clock = clock
        self._has_failed = False
        self._dtype = value.dtype
        self._value = value.numpy().astype(np.float64)
        self._size = float(np.max(np.abs(self._value)))
        self._directions = _directions(self._value.shape)

    @property
    def _is_over(self) -> bool:
        return self._has_failed or self._clock.is_over

    def until_reaction(self, targets: Sequence[int]) -> Iterator[Influence]:
        """What these targets say to larger and larger moves, until all have reacted, or the time is over."""
        last: dict[int, Influence] = {}
        for part in _PARTS if np.isfinite(self._size) else ():
            for target, each in self._moved(part, targets).items():
                known = last.get(target)
                if known is None or not known.reacts:
                    last[target] = each if known is None else replace(each, still=known.amount)
            if len(last) == len(targets) and all(each.reacts for each in last.values()):
                break
            if self._is_over:
                # What has not been moved by its whole way may still react.
                last = {target: each for target, each in last.items() if each.reacts}
                break
        yield from self._least(last)

    def _least(self, last: Mapping[int, Influence]) -> Iterator[Influence]:
        """The same with the smallest moves to which the targets react."""
        at_once = [target for target, each in last.items() if each.reacts and not each.still]
        tried = [self._moved(part, at_once) for part in _SMALL_PARTS] if at_once else []
        for target, known in last.items():
            smaller = [each[target] for each in tried if target in each]
            least = min([*(each for each in smaller if each.reacts), known], key=lambda each: each.amount)
            still = max((each.amount for each in smaller if each.amount < least.amount), default=known.still)
            yield replace(least, still=still)

    def _moved(self, part: float, targets: Sequence[int]) -> dict[int, Influence]:
        """What targets say to moves by a part of the variable's size, until all react; without those that are not
        finite then."""
        amount = part * (self._size or 1.0)
        found: dict[int, Influence] = {}
        for direction in self._directions:
            if self._is_over:
                return {target: each for target, each in found.items() if each.reacts}
            moved = tf.constant(self._value + amount * direction, self._dtype)
            if np.array_equal(moved.numpy().astype(np.float64), self._value):
                continue  # its type has no numbers in between
            try:
                losses = self._loss(self._clock.left, {self._number: moved})
            except tf.errors.OpError:  # an index is out of range, or a loop does not end
                self._has_failed = True
                continue
            for target in targets:
                before, again = (each[target] for each in self._first)
                after = losses.get(target, np.nan)
                known = found.get(target)
                if np.isfinite(after) and (known is None or not known.reacts):
                    found[target] = Influence(target, self._variable, self._size, amount, before, again, after, 0.0)
            if len(found) == len(targets) and all(each.reacts for each in found.values()):
                break
        return found
