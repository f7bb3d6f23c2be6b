"""The forward values of a step: measured in the step, and converted to a record after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.record.schema import GRADIENT_STATISTICS, Example, GradientRows, OpValue, Rows, StepValues, Trace
from tb_gradflow.record.values import MOST_NUMBERS, MOST_ROWS
from tb_gradflow.trace.capture.symbols import Symbols
from tb_gradflow.trace.graph.build_trace import Numbered
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.numerics.values import PLACE_COLUMNS, bad_columns, bad_rows, size_of, value_statistics
from tb_gradflow.trace.step.named_inputs import Named

Array = npt.NDArray[Any]

_EXAMPLE, _DATA = "example ", "data "

_HANDLES = (tf.resource, tf.variant)

# Rows of the batch that are kept on request.
_MOST_EXAMPLES = 8

# Rows that a finding names before it only counts them.
_MOST_NAMED = 5

_TRIED = (
    *("influences", "reactions", "line_searches", "interventions", "slopes", "not_moved", "weights", "spike"),
    *("data_rows", "kept_numbers"),
)

_NOWHERE = [0] + [-1] * (PLACE_COLUMNS - 1)


def forward_values(calls: Sequence[Call], symbols: Symbols, numbered: Numbered, given: Any) -> dict[str, Any]:
    """Tensors for `step_values`, to be measured in the step, which makes these `calls`. `given` are its arguments."""
    batch = _batch_of(given)
    known = [(place, tensor) for place in numbered.places if (tensor := symbols.actual(place.symbol)) is not None]
    gradients = [
        ((target, number, ref.output), gradient)
        for target, call in enumerate(calls)
        for ref, gradient in call.gradients.items()
        if (number := numbered.number_of(call.flattener, ref)) >= 0 and _may_be_of(batch, gradient)
    ]
    tensors = [tensor for _, tensor in known]
    rows = [bad_rows(each) if _may_be_of(batch, each) else tf.constant(_NOWHERE) for each in tensors]
    columns = [bad_columns(each) if each.shape.rank == 2 else tf.constant(_NOWHERE) for each in tensors]
    return {
        "batch": tf.cast(batch, tf.int32),
        "value_places": tf.constant(
            [[each.op, each.output, each.input] for each, _ in known], tf.int32, [len(known), 3]
        ),
        "value_statistics": _stacked([value_statistics(each) for each in tensors]),
        "value_sizes": _stacked([size_of(each) for each in tensors]),
        "value_rows": _stacked(rows),
        "value_columns": _stacked(columns),
        "gradient_places": tf.constant([place for place, _ in gradients], tf.int32, [len(gradients), 3]),
        "gradient_sizes": _stacked([size_of(gradient) for _, gradient in gradients]),
        "gradient_rows": _stacked([bad_rows(gradient) for _, gradient in gradients]),
    }


def has_nonfinite(gradients: Array) -> bool:
    """Whether statistics of gradients, float32 `[rows, 6]`, count an element that is not finite."""
    columns = [GRADIENT_STATISTICS.index(column) for column in ("nan_count", "inf_count")]
    return bool(np.any(gradients[:, columns] > 0))


def is_broken(trace: Trace, measured: Mapping[str, Any], *, skips_scaled: bool) -> bool:
    """Whether a loss, a gradient or the batch of a step with these measurements was not finite. With `skips_scaled`, a
    loss scale that is too large counts for nothing: its infinities are common, and the optimizer skips those steps."""
    losses = [loss for loss, target in zip(measured["losses"], trace.targets, strict=False) if target.measured]
    if not np.all(np.isfinite(losses)):
        return True
    is_skipped = skips_scaled and any(target.scaled for target in trace.targets)
    movements = {each.row for each in trace.movements}
    rows = [row for row in range(len(measured["gradients"])) if row not in movements]
    return not is_skipped and has_nonfinite(measured["gradients"][rows])


def step_values(measured: Mapping[str, Any], step: int) -> StepValues | None:
    """The record of a step's measurements; None if its forward pass was not measured, and nothing was tried with it."""
    tried = {name: measured[name] for name in _TRIED if measured.get(name)}
    if "value_places" not in measured:
        return StepValues(step, -1, (), **tried) if tried else None
    batch = int(measured["batch"])
    columns = (measured[f"value_{name}"] for name in ("places", "statistics", "sizes", "rows", "columns"))
    gradients = (measured[f"gradient_{name}"] for name in ("places", "sizes", "rows"))
    values = tuple(_value(batch, *each) for each in zip(*columns, strict=True))
    listed = [each.rows for each in values if each.rows is not None and each.rows.count < batch]
    return StepValues(
        step,
        batch,
        values,
        tuple(
            GradientRows(int(target), int(op), int(output), found)
            for (target, op, output), size, rows in zip(*gradients, strict=True)
            if (found := _rows(rows)) is not None and size[0] and size[1] == batch
        ),
        tuple(_examples(measured, batch, listed[0].first[:_MOST_EXAMPLES] if listed else ())),
        **tried,
    )


def examples_of(given: Named) -> dict[str, Any]:
    """The batch itself, of which `step_values` keeps some rows."""
    return {f"{_EXAMPLE}{name}": tensor for name, tensor in given if tensor.shape.rank}


def data_of(given: Any) -> dict[str, Any]:
    """The batch as it was drawn, to find out where its rows come from: no part of it gets into the log."""
    parts = tf.nest.flatten(given)
    known = [each for each in parts if isinstance(each, tf.Tensor) and each.shape.rank and each.dtype not in _HANDLES]
    return {f"{_DATA}{place}": tensor for place, tensor in enumerate(known)} if len(known) == len(parts) else {}


def batch_in(measured: Mapping[str, Any]) -> list[Array]:
    """That batch: its tensors, in the order of `tf.nest.flatten`; none if it is not known."""
    return [values for name, values in measured.items() if name.startswith(_DATA)]


def rows_in(measured: Mapping[str, Any]) -> list[int]:
    """The rows of the batch that findings about these measurements may name."""
    listed = [*measured.get("value_rows", ()), *measured.get("gradient_rows", ())]
    batch = int(measured.get("batch", -1))
    spike = measured.get("spike")
    rows = {int(row) for count, *first in listed if count < batch for row in first[:_MOST_NAMED] if row >= 0}
    rows |= {row for trial in (spike.trials if spike is not None else ()) for row in trial.rows}
    return sorted(rows)[:MOST_ROWS]


def _examples(measured: Mapping[str, Array], batch: int, rows: Sequence[int]) -> Iterator[Example]:
    for name, values in measured.items():
        if name.startswith(_EXAMPLE) and len(values) == batch:
            for row in rows:
                flat = np.ravel(values[row]).astype(np.float64)
                numbers = tuple(float(each) if np.isfinite(each) else None for each in flat[:MOST_NUMBERS])
                yield Example(name.removeprefix(_EXAMPLE), row, numbers, flat.size)


def _value(batch: int, place: Array, statistics: Array, size: Array, rows: Array, columns: Array) -> OpValue:
    op, output, number = (int(each) for each in place)
    smallest, largest = (float(each) for each in statistics[:2])
    zeros, negative, nan_count, inf_count, negative_inf_count = (int(each) for each in statistics[2:])
    shape = tuple(int(each) for each in size[1 : 1 + size[0]])
    return OpValue(
        op,
        output,
        number,
        shape,
        smallest,
        largest,
        zeros,
        negative,
        nan_count,
        inf_count,
        negative_inf_count,
        rows=_rows(rows) if shape[:1] == (batch,) else None,
        columns=_rows(columns) if len(shape) == 2 else None,
    )


def _rows(places: Array) -> Rows | None:
    count, *first = (int(each) for each in places)
    return Rows(count, tuple(each for each in first if each >= 0)) if count else None


def _batch_of(given: Any) -> Any:
    """Number of rows of the batch: the common length of the first axis of all tensors of the step; -1 if there is
    none.
    """
    flat = [each for each in tf.nest.flatten(given) if isinstance(each, (tf.Tensor, np.ndarray)) and len(each.shape)]
    known = {each.shape[0] for each in flat}
    if None not in known:
        return tf.constant(known.pop() if len(known) == 1 else -1)
    lengths = tf.stack([tf.shape(each)[0] for each in flat])
    return tf.where(tf.reduce_all(lengths == lengths[0]), lengths[0], -1)


def _may_be_of(batch: Any, tensor: Any) -> bool:
    """Whether the first axis of a tensor may be the batch, as far as shapes are known."""
    if not tensor.shape.rank:
        return False
    known = tf.get_static_value(batch)
    return known is None or tensor.shape[0] is None or int(known) == tensor.shape[0]


def _stacked(tensors: Sequence[Any]) -> Any:
    return tf.stack(tensors) if tensors else tf.zeros([0])
