"""Where rows of a batch are in the data that `fit` was given.

Nothing is drawn from a `tf.data.Dataset`, and none of its functions runs: only its structure is read, and the arrays
that it holds. So a row is found by its content in arrays, whatever order they are drawn in, or else by its position,
where each transformation is one that keeps the order.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.record.schema import DataRow
from tb_gradflow.trace.engine.draws import is_random
from tb_gradflow.trace.observed.kept_step import all_nodes
from tb_gradflow.trace.protection.foreign import suppressed
from tb_gradflow.trace.step.forward_values import batch_in, rows_in

Array = npt.NDArray[Any]

MOST_SEARCHED = 1 << 30
"""Size limit in bytes of the arrays that are searched for a row."""

_MOST_COMPARED = 1 << 26
"""Size limit in bytes of the rows that are compared in full, for all rows that are looked for."""

_COMPARED_FIRST = 32
"""So many bytes of each row are compared first."""

_BATCHES = frozenset({"BatchDataset", "ParallelBatchDataset", "PaddedBatchDataset"})
_MAPS = frozenset({"MapDataset", "ParallelMapDataset"})
_KEEPS_ORDER = frozenset({"PrefetchDataset", "OptionsDataset", "CacheDataset", "TakeDataset"})

# The ops of functions of a batch that leave each row in its place.
_ROW_BY_ROW = frozenset(
    {"AddV2", "Cast", "Const", "Identity", "Maximum", "Minimum", "Mul", "NoOp", "OneHot", "Placeholder", "RealDiv"}
    | {"Sub"}
)


class DrawnRows:
    """The iterator that the executions of a fit take their batches from."""

    def __init__(self) -> None:
        # Weak: it has the user's data.
        self._iterator: Callable[[], Any] = lambda: None
        self._first = 0

    def begins(self, iterator: Any, step: int) -> None:
        """An execution, whose first step has this number, is about to take its batches from that iterator."""
        if self._iterator() is not iterator:
            self._iterator, self._first = _weakly(iterator), step

    def located(self, measured: Mapping[str, Any], step: int) -> tuple[DataRow, ...]:
        """Where the rows are that findings about this step may name; none if that is not certain."""
        rows, batch = rows_in(measured), batch_in(measured)
        dataset = getattr(self._iterator(), "_dataset", None)
        if not rows or dataset is None or step < self._first or len({len(each) for each in batch}) != 1:
            return ()
        found: list[DataRow] = []
        with suppressed():  # such as a dataset of a kind that no one has seen
            found = list(_located(dataset, batch, rows, step - self._first))
        return tuple(found)


def _weakly(iterator: Any) -> Callable[[], Any]:
    return weakref.ref(iterator) if isinstance(iterator, tf.data.Iterator) else lambda: None


def _located(dataset: Any, batch: Sequence[Array], rows: Sequence[int], drawn: int) -> Iterator[DataRow]:
    """`drawn` batches have been taken before this one."""
    chain = _chain(dataset)
    is_ordered = dataset.options().deterministic is not False
    sources = _sources(chain)
    arrays = _arrays(sources) if sources is not None else None
    is_of_keras = _holds_arrays(chain)
    is_changed = any(_kind(each) in _MAPS for each in chain) and not is_of_keras
    for row in rows:
        if is_of_keras and arrays is not None:
            positions = _positions_in_arrays(chain, len(arrays[0]), len(batch[0]), row, drawn)
        else:
            position = _position(chain, drawn, row) if is_ordered else None
            positions = set() if position is None else {position}
        parts = [each[row : row + 1] for each in batch]
        equal = _equal(arrays, parts, _MOST_COMPARED // len(rows)) if arrays is not None else None
        certain = positions if equal is None else positions & set(equal)
        if equal and len(certain) != 1:
            yield DataRow(row, equal[0], len(equal))
        elif len(certain) == 1:
            yield DataRow(row, *certain)
        elif is_changed and len(positions) == 1:
            yield DataRow(row, *positions)


def _kind(dataset: Any) -> str:
    return type(dataset).__name__.lstrip("_")


def _chain(dataset: Any) -> list[Any]:
    """A dataset, the one that it is made from, and so on, until one that is made from none, or from several."""
    chain = [dataset]
    while len(inputs := chain[-1]._inputs()) == 1:
        chain += inputs
    return chain


def _holds_arrays(chain: Sequence[Any]) -> bool:
    """Whether it is what Keras makes of arrays: a map of indices, each with the same arrays, to the rows at these
    indices."""
    if _kind(chain[-1]) != "ZipDataset" or len(chain) < 2 or _kind(chain[-2]) not in _MAPS:
        return False
    kinds = [[_kind(each) for each in _chain(part)] for part in chain[-1]._inputs()]
    return len(kinds) == 2 and kinds[1] == ["RepeatDataset", "TensorDataset"]


def _sources(chain: Sequence[Any]) -> list[Any] | None:
    """The tensors of which an element has a row each; `None` if there are none."""
    if _holds_arrays(chain):
        return list(_chain(chain[-1]._inputs()[1])[-1]._tensors)
    leaves = chain[-1]._inputs() if _kind(chain[-1]) == "ZipDataset" else chain[-1:]
    if not all(_kind(each) == "TensorSliceDataset" for each in leaves):
        return None
    return [tensor for each in leaves for tensor in each._tensors]


def _arrays(tensors: Sequence[Any]) -> list[Array] | None:
    """These, if they can be searched."""
    if not tensors or any(each.dtype == tf.variant or not each.shape.rank for each in tensors):
        return None
    sizes = [max(each.dtype.size or 0, 1) * int(each.shape.num_elements()) for each in tensors]
    if sum(sizes) > MOST_SEARCHED or len({int(each.shape[0]) for each in tensors}) != 1:
        return None
    return [each.numpy() for each in tensors]


def _equal(arrays: Sequence[Array], row: Sequence[Array], most: int) -> list[int] | None:
    """The numbers of the rows that are the same in every bit as this one, of which `row` has an array of one row for
    each; `None` if more than `most` bytes would have to be compared."""
    if len(arrays) != len(row):
        return []
    left = np.arange(len(arrays[0]))
    # Small ones first: a label leaves few rows to compare.
    for array, part in sorted(zip(arrays, row, strict=True), key=lambda pair: pair[1].nbytes):
        if array.dtype != part.dtype or array.shape[1:] != part.shape[1:]:
            return []
        listed, one = _flat(array, len(array)), _flat(part, 1)[0]
        for column in sorted({*np.linspace(0, len(one) - 1, _COMPARED_FIRST).astype(int)}) if len(one) else ():
            left = left[listed[left, column] == one[column]]
        if len(left) * len(one) > most:
            return None
        left = left[(listed[left] == one).all(axis=1)]
    return [int(each) for each in left]


def _flat(array: Array, rows: int) -> Array:
    """The rows as bytes, or as Python's, if these are strings."""
    flat = np.ascontiguousarray(array).reshape(rows, -1)
    return flat if flat.dtype.hasobject or not flat.size else flat.view(np.uint8)


def _positions_in_arrays(chain: Sequence[Any], count: int, size: int, row: int, drawn: int) -> set[int]:
    """Where a row of a batch of this size can be if the arrays are drawn in their order: the last batch may be
    shorter than the others."""
    indices = _chain(chain[-1]._inputs()[0])
    nodes = (node for each in indices for function in each._functions() for node in all_nodes(function.function.graph))
    if any(map(is_random, nodes)):
        return set()
    return {first + row for first in (drawn * size, count - size) if 0 <= first <= count - size}


def _position(chain: Sequence[Any], number: int, row: int | None) -> int | None:
    """The number in the source of the chain of a row of an element of its first dataset; of the element itself, if no
    row is given. `None` if it is not certain."""
    for dataset, given in zip(chain, [*chain[1:], None], strict=True):
        kind = _kind(dataset)
        if kind in _BATCHES and row is not None:
            number, row = number * int(dataset._batch_size) + row, None
        elif kind in _MAPS:
            if getattr(dataset, "_deterministic", "") == "false" or (row is not None and not _is_row_by_row(dataset)):
                return None
        elif kind == "RepeatDataset":
            length = int(given.cardinality()) if given is not None else tf.data.UNKNOWN_CARDINALITY
            if length == tf.data.UNKNOWN_CARDINALITY or not length:
                return None
            number = number % length if length > 0 else number
        elif kind == "SkipDataset" and int(dataset._count) >= 0:
            number += int(dataset._count)
        elif kind == "ShardDataset":
            number = number * int(dataset._num_shards) + int(dataset._index)
        elif kind == "ZipDataset" and row is None:
            numbers = {_position(_chain(each), number, None) for each in dataset._inputs()}
            return numbers.pop() if len(numbers) == 1 else None
        elif kind in ("TensorSliceDataset", "RangeDataset") and row is None:
            return number
        elif kind not in _KEEPS_ORDER:
            return None
    return None


def _is_row_by_row(dataset: Any) -> bool:
    """Whether it is certain that a map of batches leaves each row in its place."""
    functions = dataset._functions()
    return all(node.op in _ROW_BY_ROW for each in functions for node in all_nodes(each.function.graph))
