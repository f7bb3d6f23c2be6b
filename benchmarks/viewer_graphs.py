"""Logs of synthetic models of any size, for `viewer.py`."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field

from tb_gradflow.record.schema import (
    FORMAT,
    Edge,
    Layer,
    Op,
    Session,
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

STATISTICS_OF_A_VARIABLE = 4


@dataclass
class Builder:
    """A trace in the making."""

    ops: list[Op] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)

    def op(self, name: str, kind: str, *inputs: int, reads: int | None = None) -> int:
        edges = tuple(Edge(producer, 0, at, "yes", False) for at, producer in enumerate(inputs))
        self.ops.append(Op(name, kind, edges, (Tensor((32, 64), "float32"),), None, None, reads, None, None))
        return len(self.ops) - 1

    def read(self, variable: str, scope: str) -> int:
        self.variables.append(Variable(variable, (64, 64), "float32", True, True))
        return self.op(f"{scope}/ReadVariableOp", "ReadVariableOp", reads=len(self.variables) - 1)

    def dense(self, scope: str, x: int) -> int:
        self.layers.append(Layer(scope, scope.rpartition("/")[2], "Dense"))
        x = self.op(f"{scope}/MatMul", "MatMul", x, self.read(f"{scope}/kernel", f"{scope}/MatMul"))
        return self.op(f"{scope}/BiasAdd", "BiasAdd", x, self.read(f"{scope}/bias", f"{scope}/BiasAdd"))

    def norm(self, scope: str, x: int) -> int:
        self.layers.append(Layer(scope, scope.rpartition("/")[2], "LayerNormalization"))
        mean = self.op(f"{scope}/moments/mean", "Mean", x)
        square = self.op(f"{scope}/moments/SquaredDifference", "SquaredDifference", x, mean)
        root = self.op(f"{scope}/batchnorm/Rsqrt", "Rsqrt", self.op(f"{scope}/moments/variance", "Mean", square))
        gain = self.op(f"{scope}/batchnorm/mul", "Mul", root, self.read(f"{scope}/gamma", f"{scope}/batchnorm/mul"))
        left = self.op(f"{scope}/batchnorm/mul_1", "Mul", x, gain)
        middle = self.op(f"{scope}/batchnorm/mul_2", "Mul", mean, gain)
        right = self.op(f"{scope}/batchnorm/sub", "Sub", self.read(f"{scope}/beta", f"{scope}/batchnorm/sub"), middle)
        return self.op(f"{scope}/batchnorm/add_1", "AddV2", left, right)

    def block(self, scope: str, x: int) -> int:
        """A transformer's: 45 ops."""
        at = self.norm(f"{scope}/norm_1", x)
        query, key, value = (self.dense(f"{scope}/attention/{name}", at) for name in ("query", "key", "value"))
        scores = self.op(f"{scope}/attention/scores/MatMul", "BatchMatMulV2", query, key)
        scores = self.op(
            f"{scope}/attention/softmax/Softmax", "Softmax", self.op(f"{scope}/attention/scores/mul", "Mul", scores)
        )
        mixed = self.op(f"{scope}/attention/mix/MatMul", "BatchMatMulV2", scores, value)
        x = self.op(f"{scope}/add", "AddV2", x, self.dense(f"{scope}/attention/output", mixed))
        wide = self.op(f"{scope}/mlp/Gelu", "Gelu", self.dense(f"{scope}/mlp/up", self.norm(f"{scope}/norm_2", x)))
        return self.op(f"{scope}/add_1", "AddV2", x, self.dense(f"{scope}/mlp/down", wide))

    def trace(self, loss: int) -> Trace:
        """With a gradient of every tensor."""
        count = len(self.variables)
        return Trace(
            index=0,
            ops=tuple(self.ops),
            variables=tuple(self.variables),
            targets=(Target("loss", loss, 0, None, "none"),),
            variable_gradients=tuple(VariableGradient(0, at, "value", at, True) for at in range(count)),
            tensor_gradients=tuple(TensorGradient(0, at, 0, "value", count + at) for at in range(len(self.ops))),
            layers=tuple(self.layers),
            sources=(),
            notes=(),
        )


def transformer(ops: int) -> Trace:
    """About so many ops, in stages of up to twelve blocks."""
    builder = Builder()
    x = builder.dense("model/embed", builder.op("model/embed/Cast", "Cast"))
    for number in range(math.ceil(ops / 45)):
        x = builder.block(f"model/stage_{number // 12}/block_{number % 12}", x)
    logits = builder.dense("model/head", x)
    return builder.trace(builder.op("loss/Mean", "Mean", builder.op("loss/CrossEntropy", "CrossEntropy", logits)))


def chain(ops: int) -> Trace:
    """One op after the other, without any scope."""
    builder = Builder()
    x = builder.op("op_0", "Mul", builder.read("w", "op_0"))
    for number in range(1, ops):
        x = builder.op(f"op_{number}", "Sin", x)
    return builder.trace(x)


def write(log_dir: str, trace: Trace, steps: int) -> None:
    """A log in which norms fade from the loss, and change with the steps."""
    session = Session(FORMAT, "1700000000000", "0.1.0", "2.21.0", "3.15.0", "made-up", ())
    rows = len(trace.variables) + len(trace.ops)
    with LogWriter(session, RecordFile(event_file_path(log_dir))) as writer:
        writer.write_trace(trace)
        for step in range(steps):
            norms = [10 ** (-2 * (1 - row / rows) - step / steps) for row in range(rows)]
            gradients = b"".join(struct.pack("<6f", norm, norm / 3, norm / 9, 0, 0, 0) for norm in norms)
            value = struct.pack(f"<{STATISTICS_OF_A_VARIABLE}f", 1.0, 0.001, 0.0, 0.0)
            record = StepRecord(0, step, 1.7e9 + step, (2.0 / (1 + step),), gradients, value * len(trace.variables))
            writer.write_step(record)
