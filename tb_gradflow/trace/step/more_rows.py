"""The rows of a step that are not gradients, and its trace with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_gradflow.record.schema import Clip, Input, LossScale, Movement, PassedValue, Source, ValueRange
from tb_gradflow.trace.capture.gradient_clips import Clipping
from tb_gradflow.trace.capture.optimizer_updates import Applied, Moved
from tb_gradflow.trace.capture.passed_values import MeasuredInput
from tb_gradflow.trace.graph.build_trace import Looked, Numbered, numbered_trace_of
from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.numerics.clipping import clipped_to, cut
from tb_gradflow.trace.numerics.statistics_table import Block, Row
from tb_gradflow.trace.source.user_line import in_log, origin_of

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class MoreRows:
    """The rows of a step that are not results of a tape.

    Attributes:
        inputs: The name of each, with its row.
        movements: Each updated variable, with its row.
        ranges: The ranges of values that functions are given.
        passed: The values that products and the like are given.
        clips: The clips of gradients, with their rows.
        scales: The numbers of the updates whose optimizer adapts a loss scale, with their rows.
    """

    inputs: Sequence[tuple[str, Row]] = ()
    movements: Sequence[tuple[Moved, Row]] = ()
    ranges: Sequence[MeasuredInput] = ()
    passed: Sequence[MeasuredInput] = ()
    clips: Sequence[tuple[Clipping, Row]] = ()
    scales: Sequence[tuple[int, Row]] = ()


def trace_with(
    more: MoreRows,
    looked: Looked,
    applied: Sequence[Applied],
    index: int,
    *,
    keep_source: bool = True,
    root: Any = None,
) -> Numbered:
    """See `numbered_trace_of`; with the updates of optimizers, and these rows."""
    numbered = numbered_trace_of(looked, index, keep_source=keep_source, root=root)
    number_of_row = looked.rows.numbers()
    sources = list(numbered.trace.sources)
    trace = replace(
        numbered.trace,
        inputs=tuple(Input(name, number_of_row(row)) for name, row in more.inputs),
        optimizers=tuple(each.in_log(keep_source=keep_source) for each in applied),
        movements=tuple(
            Movement(each.variable, each.update, number_of_row(row), each.given.decay, each.given.constraint)
            for each, row in more.movements
        ),
        ranges=tuple(
            ValueRange(op, each.input, number_of_row(each.row), tuple(map(number_of_row, each.beyond)))
            for each in more.ranges
            if (op := numbered.number_of(each.flattener, Ref(each.op, 0))) >= 0
        ),
        passed=tuple(
            PassedValue(op, each.input, number_of_row(each.row))
            for each in more.passed
            if (op := numbered.number_of(each.flattener, Ref(each.op, 0))) >= 0
        ),
        clips=tuple(
            Clip(
                each.by,
                each.limit,
                tuple(moved.variable for moved in each.moved),
                number_of_row(row),
                each.moved[0].update,
                _place(each, sources, keep_source=keep_source),
            )
            for each, row in more.clips
        ),
        loss_scales=tuple(LossScale(number, number_of_row(row)) for number, row in more.scales),
        sources=tuple(sources),
    )
    return replace(numbered, trace=trace)


def _place(clip: Clipping, sources: list[Source], *, keep_source: bool) -> int | None:
    """The number of the line that calls a clip; it is added if it is not there."""
    found = None if clip.called is None else origin_of(clip.called.frames, "", keep_source=keep_source).source
    if found is None or not keep_source:
        return None
    source = in_log(found)
    if source not in sources:
        sources.append(source)
    return sources.index(source)


class ClipRows:
    """Measures clips: the statistics of what they are given and of what is left, in a block that is not in the log.

    Args:
        clippings: The clips.
        block: The block.
        apart: Returns a tensor as it may be measured.
    """

    def __init__(self, clippings: Sequence[Clipping], block: Block, apart: Callable[[Any], Any]) -> None:
        self.block = block
        self._clippings = clippings
        self._places: list[tuple[list[Row], list[Row] | None]] = []
        for each in clippings:
            before = [block.measure(apart(tensor)) for tensor in each.before]
            after: list[Row] | None = None
            if each.called is not None:
                after = [block.measure(apart(tensor)) for tensor in each.called.after]
            elif each.by == "clipvalue" and each.limit is not None and each.moved[0].applied.divisor is None:
                after = [block.measure(apart(tensor), of=clipped_to(each.limit)) for tensor in each.before]
            self._places.append((before, after))
        block.stack()

    def rows(self, table: Array, divisors: Sequence[float]) -> list[list[float]]:
        """The `CLIP_STATISTICS` of each, from the statistics in the block; and by what the gradients that each clips
        are divided before."""
        found = []
        for each, (before, after), divisor in zip(self._clippings, self._places, divisors, strict=True):
            limit = None if each.called is not None or each.by == "clipvalue" else each.limit
            given = table[[row.place for row in before]]
            left = None if after is None else table[[row.place for row in after]]
            found.append(cut(given, left, limit, 1.0 if each.called is not None else divisor))
        return found
