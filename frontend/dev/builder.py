"""Builds made-up traces op by op, with gradients for all tensors that one would reach."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from tb_gradflow.record.schema import (
    Edge,
    Layer,
    Op,
    Passes,
    Source,
    Target,
    Tensor,
    TensorGradient,
    Trace,
    Variable,
    VariableGradient,
)

Input = int | tuple[int, Passes]


@dataclass
class Builder:
    """Collects ops; `trace` then asks of each tensor whether a gradient would reach it."""

    ops: list[Op] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)

    def variable(self, name: str, *shape: int, trainable: bool = True, dtype: str = "float32") -> int:
        self.variables.append(Variable(name, shape, dtype, trainable, tracked=True))
        return len(self.variables) - 1

    def op(
        self,
        name: str,
        type: str,
        *inputs: Input,
        dtype: str = "float32",
        source: int | None = None,
        api: str | None = None,
        reads: int | None = None,
        carried: int | None = None,
    ) -> int:
        edges = [
            Edge(each, 0, index, "yes", False) if isinstance(each, int) else Edge(each[0], 0, index, each[1], False)
            for index, each in enumerate(inputs)
        ]
        if carried is not None:
            edges.append(Edge(carried, 0, len(edges), "yes", True))
        outputs = (Tensor((-1, 8), dtype),)
        self.ops.append(Op(name, type, tuple(edges), outputs, source, api, reads, None, None))
        return len(self.ops) - 1

    def read(self, variable: int, name: str) -> int:
        return self.op(name, "ReadVariableOp", reads=variable, dtype=self.variables[variable].dtype)

    def layer(self, scope: str, name: str, type: str) -> str:
        self.layers.append(Layer(scope, name, type))
        return scope

    def line(self, file: str, line: int, function: str, code: str) -> int:
        self.sources.append(Source(file, line, function, code))
        return len(self.sources) - 1

    def trace(self, loss: int, index: int = 0) -> Trace:
        reached = self._reached(loss)
        tensors, variables, row = [], [], 0
        got = {op.reads: at for at, op in enumerate(self.ops) if op.reads is not None and at in reached}
        for at in range(len(self.ops)):
            value = at in reached
            tensors.append(TensorGradient(0, at, 0, "value" if value else "none", row if value else None))
            row += value
        for at, variable in enumerate(self.variables):
            if variable.trainable:
                value = at in got
                variables.append(VariableGradient(0, at, "value" if value else "none", row if value else None, True))
                row += value
        target = Target("loss", loss, 0, None, "none")
        everything = (tuple(self.ops), tuple(self.variables), (target,), tuple(variables), tuple(tensors))
        return Trace(index, *everything, tuple(self.layers), tuple(self.sources), ())

    def _reached(self, loss: int) -> set[int]:
        reached, waiting = {loss}, [loss]
        while waiting:
            for edge in self.ops[waiting.pop()].inputs:
                if edge.passes == "yes" and edge.op not in reached:
                    reached.add(edge.op)
                    waiting.append(edge.op)
        return reached


def rows_of(trace: Trace) -> list[str]:
    """The name of the op or variable whose gradient each row is."""
    named = {each.row: trace.ops[each.op].name for each in trace.tensor_gradients if each.row is not None}
    named |= {
        each.row: trace.variables[each.variable].name for each in trace.variable_gradients if each.row is not None
    }
    return [named[row] for row in sorted(named)]


def smooth_norms(trace: Trace, step: int, decades_lost: float) -> list[float]:
    """Norms that shrink from the loss to the first op, and a little with the steps."""
    random.seed(step)
    rows = rows_of(trace)
    depth = {op.name: index / max(1, len(trace.ops) - 1) for index, op in enumerate(trace.ops)}
    for op in trace.ops:
        if op.reads is not None:
            depth[trace.variables[op.reads].name] = depth[op.name]
    fade = math.exp(-step / 400)
    return [fade * 10 ** (-decades_lost * (1 - depth.get(name, 0.5)) + random.gauss(0, 0.12)) for name in rows]
