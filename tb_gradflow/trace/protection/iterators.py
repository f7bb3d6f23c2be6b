"""Iterators that the recorder puts in place of those of a training: nothing in them can fail on its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.protection.beside import Failed


class OneBatch:
    """A batch as a TensorFlow iterator with one element."""

    def __init__(self, batch: Any, spec: Any) -> None:
        self._left = [batch]
        self.element_spec = spec

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._left:
            raise StopIteration
        return self._left.pop()

    def get_next(self) -> Any:
        if not self._left:
            raise tf.errors.OutOfRangeError(None, None, "there is one batch")
        return self._left.pop()


class Kept:
    """An iterator that keeps what it returns.

    Attributes:
        source: Where its elements come from.
    """

    def __init__(self, source: Iterator[Any]) -> None:
        self.source = source
        self._returned: list[Any] = []

    def __next__(self) -> Any:
        self._returned.append(next(self.source))
        return self._returned[-1]

    def again(self) -> Iterator[Any]:
        """All elements, from the first one."""
        return itertools.chain(list(self._returned), self.source)


def rerouted(
    original: Callable[[Any], Any], choose: Callable[[Kept], tuple[Callable[[Any], Any], Any]], failed: Failed
) -> Callable[[Any], Any]:
    """A function of an iterator. It calls what `choose` returns, another function and its argument; if `choose` fails,
    the original with the whole iterator. Exceptions of the called function reach the caller."""

    def stand_in(iterator: Any) -> Any:
        kept = Kept(iterator)
        try:
            run, given = choose(kept)
        except Exception as fault:
            failed(fault)
            run, given = original, kept.again() if isinstance(kept.source, Iterator) else iterator
        return run(given)

    return stand_in
