"""Records made by hand, and logs of them."""

from __future__ import annotations

import struct
from pathlib import Path

from tb_gradflow.record.schema import (
    FORMAT,
    Edge,
    Op,
    Passes,
    Session,
    Source,
    StepRecord,
    Target,
    Tensor,
    TensorGradient,
    Trace,
    Variable,
    VariableGradient,
)
from tb_gradflow.store.layout import event_file_path
from tb_gradflow.store.writer import LogWriter, RecordFile

BEGAN = 1_700_000_000.0


def session(id: int = 1_700_000_000_000, format: int = FORMAT, expected: tuple[str, ...] = ()) -> Session:
    return Session(format, f"{id:013d}", "0.1.0", "2.21.0", "3.15.0", "sample", expected)


def op(name: str, type: str, *inputs: int, passes: Passes = "yes", reads: int | None = None) -> Op:
    edges = tuple(Edge(producer, 0, place, passes, False) for place, producer in enumerate(inputs))
    return Op(name, type, edges, (Tensor((2, 3), "float32"),), 0, None, reads, None, None)


def trace(index: int = 0, step_filter: str = "step_filter/threshold") -> Trace:
    """A kernel that learns, and a threshold that a comparison cuts off from the loss."""
    ops = (
        op("kernel/read", "ReadVariableOp", reads=0),
        op("threshold/read", "ReadVariableOp", reads=1),
        op("mask/Less", "Less", 1, passes="not_differentiable"),
        op("mask/Cast", "Cast", 2),
        op("Mul", "Mul", 0, 3),
        op("loss", "Mean", 4),
    )
    return Trace(
        index=index,
        ops=ops,
        variables=(
            Variable("dense/kernel", (2, 3), "float32", True, True),
            Variable(step_filter, (), "float32", True, True),
        ),
        targets=(Target("loss", 5, 0, 0, "none"),),
        variable_gradients=(
            VariableGradient(0, 0, "value", 0, True),
            VariableGradient(0, 1, "none", None, True),
        ),
        tensor_gradients=(TensorGradient(0, 4, 0, "value", 1), TensorGradient(0, 0, 0, "value", 2)),
        layers=(),
        sources=(Source("model.py", 17, "call", "mask = tf.sequence_mask(threshold, width)"),),
        notes=(),
    )


def step(number: int, trace: int = 0, loss: float = 0.5, norm: float | None = None) -> StepRecord:
    """A step of `trace()`; the norm of row r is `norm + r`, by default `number + r`."""
    first = float(number) if norm is None else norm
    gradients = [value for row in range(3) for value in (first + row, 0.5, 0.25, 0.0, 0.0, 0.0)]
    variables = [1.0 + number, 0.125, 0.0, 0.0, 2.0 + number, 0.0, 0.0, 0.0]
    return StepRecord(
        trace, number, BEGAN + number, (loss,), struct.pack("<18f", *gradients), struct.pack("<8f", *variables)
    )


def open_writer(log_dir: Path | str, of: Session | None = None) -> LogWriter:
    """A writer whose clock stands still: its chunks are the same on a machine that is slow."""
    return LogWriter(of or session(), RecordFile(event_file_path(str(log_dir))), clock=lambda: 0.0)


def write_log(log_dir: Path | str, steps: int = 3, of: Session | None = None) -> Path:
    """A log of one trace with that many steps; the path of its event file."""
    with open_writer(log_dir, of) as writer:
        writer.write_trace(trace())
        for number in range(steps):
            writer.write_step(step(number))
    return event_file(log_dir)


def event_file(log_dir: Path | str) -> Path:
    """The newest event file of a log."""
    return max((Path(log_dir) / "gradflow").glob("*tfevents*"))
