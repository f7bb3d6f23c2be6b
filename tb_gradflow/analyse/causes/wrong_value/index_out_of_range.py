"""A label, a word or another index that is outside of what it indexes."""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.words.names import called, file_name, place_of, spoken
from tb_gradflow.record.report import Finding, OpReport, SourceReport
from tb_gradflow.record.schema import Raised, Trace

_LABELS = "SparseSoftmaxCrossEntropyWithLogits"

_OF_ROWS = frozenset({"GatherV2", "Gather", "GatherNd", "ResourceGather", "ResourceGatherNd"})

_SAME = frozenset({"Identity", "Cast", "Reshape", "ReadVariableOp"})


def raised_in(trace: Trace) -> Raised | None:
    """What a step of this trace has raised about an index; `None` if it has not."""
    return next((each for each in trace.raised if each.size is not None), None)


def findings_of_indices(measured: Measured, later: Trace | None) -> Iterator[Finding]:
    """An error for an index at which the step has raised, or one after the last recorded step: the trace `later`."""
    for trace, begins in ((measured.topology.trace, "The step"), (later, "A later step")):
        if trace is not None and (raised := raised_in(trace)) is not None:
            yield _of_error(trace, raised, begins)
            return


def _of_error(trace: Trace, raised: Raised, begins: str) -> Finding:
    taken = raised.op if raised.op >= 0 else None
    place = "" if taken is None else place_of(trace, taken)
    source = None if raised.source is None else trace.sources[raised.source]
    if source is not None:
        place = f" ({file_name(source.file)}:{source.line})"
    name = called(trace, taken) if taken is not None else f"`{raised.api or spoken(raised.type)}`"
    if raised.type == _LABELS and _LABELS in name:
        name, place = "`sparse_categorical_crossentropy`", place if source is not None else ""
    kind, what, rows = _words(trace, raised)
    low, high, size = _numbers(raised)
    given = f"the {kind} {high}" if low == high else f"{kind}s from {low} to {high}"
    span = f", 0 to {size - 1}" if size > 1 else ""
    if not (raised.api or raised.type):
        name = "an op"
    return Finding(
        cause=CAUSE.name,
        severity="error",
        variables=(),
        op=None if taken is None else OpReport(trace.ops[taken].name, raised.type),
        source=None if source is None else SourceReport(source.file, source.line, source.code),
        message=f"{begins} raises an error: {name}{place} gets {given}, and {what} {size} {rows}{span}.",
        fix=_fix(trace, raised),
        target=-1,
        culprit=-1,
        path=(),
    )


def _numbers(raised: Raised) -> tuple[int, int, int]:
    """The smallest and the largest index, and how many elements there are."""
    return int(raised.low), int(raised.high), int(raised.size or 0)


def _words(trace: Trace, raised: Raised) -> tuple[str, str, str]:
    """What an index is called, what has the elements, and what these are called."""
    if raised.type == _LABELS:
        return "label", "there are", "classes"
    if "Segment" in raised.type:
        return "segment", "there are", "segments"
    table = _table_of(trace, raised)
    if raised.type in _OF_ROWS and table:
        return "index", f"`{table}` has", "rows"
    return "index", "there are", "elements"


def _table_of(trace: Trace, raised: Raised) -> str:
    """The variable that is indexed; empty if it is none."""
    op = raised.op
    while op >= 0:
        reads = trace.ops[op].reads
        if reads is not None:
            table = trace.variables[reads]
            # Another axis may be indexed, or what was reshaped.
            return table.name if table.shape[:1] == (raised.size,) else ""
        if op != raised.op and trace.ops[op].type not in _SAME:
            return ""
        op = next((edge.op for edge in trace.ops[op].inputs if edge.input == 0), -1)
    return ""


def _fix(trace: Trace, raised: Raised) -> str:
    low, high, size = _numbers(raised)
    if raised.type == _LABELS:
        return _fix_of_labels(low, high, size)
    if low < 0:
        return "An index below zero is an error in TensorFlow, not counted from the end: find out where it comes from."
    if raised.type in _OF_ROWS and _table_of(trace, raised):
        return (
            f"An index of {high} needs {high + 1} rows or more: the largest index of all data, plus one, such as "
            f"`Embedding({high + 1}, ...)`. Indices that count from one, a padding and an unknown word count too."
        )
    return f"Find out where the index comes from: it has to be at least 0 and less than {size}."


def _fix_of_labels(low: int, high: int, size: int) -> str:
    if low < 0:
        more = f" A label of {high} needs {high + 1} outputs." if high >= size else ""
        return (
            f"A label below zero names no class. To leave out the rows with {low}, use "
            f"`keras.losses.SparseCategoricalCrossentropy(..., ignore_class={low})`.{more}"
        )
    if low >= 1 and high == size:
        return (
            f"Labels count from zero: use `y - 1`. If there is a class 0 too, the last layer needs {high + 1} outputs."
        )
    if low == 0 and high == 255 and size == 2:
        return (
            "If 255 is the second class, as in a mask that was read from an image, use `y // 255`; if it marks what "
            "has no class, `keras.losses.SparseCategoricalCrossentropy(..., ignore_class=255)`."
        )
    return (
        f"Give the last layer one output for each class, {high + 1} for labels up to {high}; or number the classes "
        "anew, `classes, y = np.unique(y, return_inverse=True)`."
    )


CAUSE = Cause(
    name="index_out_of_range",
    meaning="a label, a word or another index that is outside of what it indexes: TensorFlow raises on a CPU, and the "
    "indices and the number of elements are those that it names",
    severity="error",
    fix="count from zero; one output, or one row of a table, for each index",
    headline="The step raises an error: an index is outside of what it indexes.",
)
