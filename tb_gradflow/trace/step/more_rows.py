"""The rows of a step that are not gradients, and its trace with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tb_gradflow.record.schema import Input, Movement, PassedValue, ValueRange
from tb_gradflow.trace.capture.optimizer_updates import Applied, Moved
from tb_gradflow.trace.capture.passed_values import MeasuredInput
from tb_gradflow.trace.graph.build_trace import Looked, Numbered, numbered_trace_of
from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.numerics.statistics_table import Row


@dataclass(frozen=True, slots=True)
class MoreRows:
    """The rows of a step that are not results of a tape.

    Attributes:
        inputs: The name of each, with its row.
        movements: Each updated variable, with its row.
        ranges: The ranges of values that functions are given.
        passed: The values that products and the like are given.
    """

    inputs: Sequence[tuple[str, Row]] = ()
    movements: Sequence[tuple[Moved, Row]] = ()
    ranges: Sequence[MeasuredInput] = ()
    passed: Sequence[MeasuredInput] = ()


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
    trace = replace(
        numbered.trace,
        inputs=tuple(Input(name, number_of_row(row)) for name, row in more.inputs),
        optimizers=tuple(each.in_log(keep_source=keep_source) for each in applied),
        movements=tuple(
            Movement(each.variable, each.update, number_of_row(row), each.given.decay, each.given.constraint)
            for each, row in more.movements
        ),
        ranges=tuple(
            ValueRange(op, each.input, number_of_row(each.row))
            for each in more.ranges
            if (op := numbered.number_of(each.flattener, Ref(each.op, 0))) >= 0
        ),
        passed=tuple(
            PassedValue(op, each.input, number_of_row(each.row))
            for each in more.passed
            if (op := numbered.number_of(each.flattener, Ref(each.op, 0))) >= 0
        ),
    )
    return replace(numbered, trace=trace)
