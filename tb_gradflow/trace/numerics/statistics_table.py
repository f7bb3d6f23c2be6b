"""The table of statistics that a step returns, and the owner of its rows: it alone determines which row belongs to
which tensor. Code that measures a tensor gets a `Row`, which has no number yet. A step takes several gradients, in a
different order than that of their measurement, and some in functions that never run, whose rows are dropped. So rows
are kept in blocks, one for each gradient that is taken, and are numbered when the step is over.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.numerics.later import Later, statistics
from tb_gradflow.trace.numerics.loss_scale import unscaled
from tb_gradflow.trace.numerics.statistics import GRADIENT_COLUMNS, dense, shared_call


class Block:
    """Rows that are measured together, in one graph.

    Attributes:
        tensor: float32 `[rows, 6]`; `None` before `stack`, and where the statistics are measured elsewhere.
        is_measured: Whether it has got its rows, though there may be none.
    """

    def __init__(self) -> None:
        self.tensor: Any = None
        self.is_measured = False
        self._stacked = 0
        self._waiting: list[Any] = []

    @property
    def row_count(self) -> int:
        """How many rows it has, those that wait to be stacked included."""
        return self._stacked + len(self._waiting)

    def add(self, statistics: Any = None, scale: Any = None) -> Row:
        """One more row: float32 `[6]`, which `stack` takes in; as it is without a scale of the loss."""
        self._waiting.append(statistics if scale is None else unscaled([statistics], scale)[0])
        return Row(self, self.row_count - 1)

    def measure(self, tensor: Any, scale: Any = None, of: Callable[[Any], Any] = statistics) -> Row:
        """One more row: what `of` computes from a tensor, by default the statistics of a gradient."""
        return self.add(self._measured(of, dense(tensor)), scale)

    def _measured(self, of: Callable[[Any], Any], tensor: Any) -> Any:
        return shared_call(of, tensor)

    def stack(self, scale: Any = None) -> None:
        """Takes in the rows that were added since the last time, as they are without a scale of the loss."""
        if self.is_measured and not self._waiting:
            return
        added = unscaled(self._waiting, scale)
        self.tensor = added if self.tensor is None else tf.concat([self.tensor, added], 0)
        self.is_measured = True
        self._stacked += len(self._waiting)
        self._waiting = []

    def drop_waiting(self) -> None:
        """Forgets the rows that were added since the last `stack`, if something has failed since then."""
        self._waiting = []


class LaterBlock(Block):
    """The same for an observed step: functions that are made from it compute the rows.

    Args:
        graph: The graph in which they do.

    Attributes:
        entries: For each row its statistics, perhaps as a `Later`, and the scale of its loss.
    """

    def __init__(self, graph: Any) -> None:
        super().__init__()
        self.graph = graph
        self.entries: list[tuple[Any, Any]] = []

    def add(self, statistics: Any = None, scale: Any = None) -> Row:
        self._waiting.append((statistics, scale))
        return Row(self, self.row_count - 1)

    def _measured(self, of: Callable[[Any], Any], tensor: Any) -> Any:
        return Later(of, tensor)

    def stack(self, scale: Any = None) -> None:
        self.is_measured = True
        self.entries += [(statistics, scale if own is None else own) for statistics, own in self._waiting]
        self._stacked = len(self.entries)
        self._waiting = []


@dataclass(frozen=True, slots=True)
class Row:
    """The statistics of one tensor.

    Attributes:
        block: The block that contains the row.
        place: Its position in the block.
    """

    block: Block
    place: int


NumberOfRow = Callable[[Row], int]
"""Returns the index of a row in the table."""


class StatisticsTable:
    """The blocks of one step, in their order."""

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self._blocks = list(blocks)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)

    def append(self, block: Block) -> None:
        """Its rows come after those that are there."""
        self._blocks.append(block)

    def numbers(self) -> NumberOfRow:
        """Numbers the rows, once there will be no more of them."""
        starts = itertools.accumulate((block.row_count for block in self._blocks), initial=0)
        first = dict(zip(self._blocks, starts, strict=False))
        return lambda row: first[row.block] + row.place

    def take(self) -> Any:
        """In the step, once it is over: float32 `[rows, 6]`."""
        return tf.concat([tf.zeros([0, GRADIENT_COLUMNS]), *(block.tensor for block in self._blocks)], 0)
