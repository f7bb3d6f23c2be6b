"""Something is moved by larger and larger amounts and in several directions, until something else is another one."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.record.experiments import Influence, Reaction

_PARTS = (0.1, 1.0, 10.0)
"""By which parts of its size something is moved, until there is a reaction."""

_SMALL_PARTS = (1e-3, 1e-2)
"""By which it is moved in addition, if there is one to the first of those."""

Answer = TypeVar("Answer", bound=Influence | Reaction)

Ask = Callable[[Any, float, float], Mapping[int, Answer]]


class Clock:
    """The time for some moves.

    Args:
        seconds: As much as there is.
        took: How long the loss takes; there is time for one in any case.
    """

    def __init__(self, seconds: float, took: float) -> None:
        self._until = time.monotonic() + max(seconds, took)
        self._took = took

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._until

    @property
    def left(self) -> float:
        """The seconds that the loss may take now: some more than there are, because a loss that is not needed to its
        end is cancelled, and TensorFlow prints a line then."""
        return max(self._until - time.monotonic(), 0.0) + 5.0 * self._took + 0.1


class Moves(Generic[Answer]):
    """One tensor is moved.

    Args:
        value: Its value.
        ask: Returns what reacts, or does not, by number, without what is not finite then. It is given another value of
            the tensor, the largest magnitude among the elements, and the largest change of one.
        clock: The time for it.
    """

    def __init__(self, value: Any, ask: Ask[Answer], clock: Clock) -> None:
        self._clock = clock
        self._has_failed = False
        self._ask: Ask[Answer] = ask
        self._dtype = value.dtype
        self._value = value.numpy().astype(np.float64)
        self._size = float(np.max(np.abs(self._value)))
        self._directions = _directions(self._value.shape)

    @property
    def _is_over(self) -> bool:
        return self._has_failed or self._clock.is_over

    def until_reaction(self, wanted: Collection[int]) -> Iterator[Answer]:
        """What these say to larger and larger moves, until all have reacted, or the time is over."""
        last: dict[int, Answer] = {}
        for part in _PARTS if np.isfinite(self._size) else ():
            for number, each in self._moved(part, wanted).items():
                known = last.get(number)
                if known is None or not known.reacts:
                    last[number] = each if known is None else replace(each, still=known.amount)
            if len(last) == len(wanted) and all(each.reacts for each in last.values()):
                break
            if self._is_over:
                # What has not been moved by its whole way may still react.
                last = {number: each for number, each in last.items() if each.reacts}
                break
        yield from self._least(last)

    def _least(self, last: Mapping[int, Answer]) -> Iterator[Answer]:
        """The same with the smallest moves to which they react."""
        at_once = [number for number, each in last.items() if each.reacts and not each.still]
        tried: list[dict[int, Answer]] = [self._moved(part, at_once) for part in _SMALL_PARTS] if at_once else []
        for number, known in last.items():
            smaller: list[Answer] = [each[number] for each in tried if number in each]
            reacting: list[Answer] = [each for each in smaller if each.reacts]
            least = min([*reacting, known], key=lambda each: each.amount)
            still = max((each.amount for each in smaller if each.amount < least.amount), default=known.still)
            yield replace(least, still=still)

    def _moved(self, part: float, wanted: Collection[int]) -> dict[int, Answer]:
        """What they say to moves by a part of the size, until all react."""
        amount = part * (self._size or 1.0)
        found: dict[int, Answer] = {}
        for direction in self._directions:
            if self._is_over:
                return {number: each for number, each in found.items() if each.reacts}
            moved = tf.constant(self._value + amount * direction, self._dtype)
            if np.array_equal(moved.numpy().astype(np.float64), self._value):
                continue  # its type has no numbers in between
            try:
                answers = self._ask(moved, self._size, amount)
            except tf.errors.OpError:  # an index is out of range, or a loop does not end
                self._has_failed = True
                continue
            # What is not finite any more has reacted, though nobody knows how far.
            self._has_failed |= not answers.keys() >= {*wanted}
            for number, each in answers.items():
                known = found.get(number)
                if number in wanted and (known is None or not known.reacts):
                    found[number] = each
            if len(found) == len(wanted) and all(each.reacts for each in found.values()):
                break
        return found


def _directions(shape: Sequence[int]) -> list[npt.NDArray[np.float64]]:
    """Ways to move the elements of a tensor, each by one at most. The same amount everywhere would be an offset, which
    a softmax or a normalisation takes out."""
    size = int(np.prod(shape))
    if size == 1:
        return [np.ones(shape), -np.ones(shape)]
    signs = np.where(np.arange(size) % 2, -1.0, 1.0).reshape(shape)
    lengths = np.random.default_rng(0).uniform(-1.0, 1.0, shape)
    return [signs, lengths / np.max(np.abs(lengths)), -signs, -lengths / np.max(np.abs(lengths))]
