"""Traces and steps made by hand: an op is a line, and what does not matter is left out.

graph = Graph()
threshold = graph.variable("threshold")
mask = graph.op("Less", threshold, passes="not_differentiable", dtype="bool")
graph.target(graph.op("Mean", graph.op("Cast", mask, passes="dtype")))
diagnosis = graph.diagnose()
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.record.report import Diagnosis, Finding
from tb_gradflow.record.schema import (
    FORMAT,
    Constant,
    Edge,
    Given,
    Input,
    Layer,
    Op,
    Outcome,
    Passes,
    Session,
    Source,
    Target,
    Tensor,
    TensorGradient,
    Trace,
    Variable,
    VariableGradient,
)

FINE = (1.0, 0.5, 0.1, 0.0, 0.0, 0.0)
ZERO = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
NAN = (1.0, 0.5, 0.1, 0.0, 3.0, 0.0)
INF = (1.0, 0.5, 0.1, 0.0, 0.0, 3.0)

Row = tuple[float, float, float, float, float, float]


def sized(max_abs: float, *, zeros: float = 0.0) -> Row:
    """A finite gradient whose largest element is `max_abs`."""
    return (max_abs * 2, max_abs, max_abs / 2, zeros, 0.0, 0.0)


class Graph:
    """Grows a trace op by op; every method that adds an op returns its index."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.variables: list[Variable] = []
        self.targets: list[Target] = []
        self.asked: list[VariableGradient] = []
        self.tensors: list[TensorGradient] = []
        self.layers: list[Layer] = []
        self.sources: list[Source] = []
        self.notes: list[str] = []
        self.rows: list[Row] = []
        self.weights: dict[int, tuple[float, float]] = {}
        self.nonfinite: dict[int, tuple[float, float]] = {}
        self.losses: list[float] = []
        self.inputs: list[Input] = []
        self.whole = True
        self.failure = ""

    def variable(
        self,
        name: str,
        *,
        dtype: str = "float32",
        shape: tuple[int, ...] = (3,),
        trainable: bool = True,
        tracked: bool = True,
        read: bool = True,
    ) -> int:
        """A variable and the op that reads it; the op's index, or -1 if nobody reads it."""
        self.variables.append(Variable(name, shape, dtype, trainable, tracked))
        if not read:
            return -1
        return self._add("ReadVariableOp", (), dtype, shape, name=f"{name}/Read", reads=len(self.variables) - 1)

    def read(self, name: str, *, updated: bool = False) -> int:
        """Another op that reads the variable `name`; whether the step has updated it before."""
        place = self.place(name)
        variable = self.variables[place]
        op = self._add("ReadVariableOp", (), variable.dtype, variable.shape, reads=place)
        self.ops[op] = replace(self.ops[op], updated=updated)
        return op

    def place(self, name: str) -> int:
        return [variable.name for variable in self.variables].index(name)

    def op(
        self,
        kind: str,
        *inputs: int,
        passes: Passes | tuple[Passes, ...] = "yes",
        dtype: str = "float32",
        shape: tuple[int, ...] | None = (3,),
        name: str | None = None,
        api: str | None = None,
        line: str | None = None,
        writes: str | None = None,
        first: int = 0,
        output: int = 0,
        custom_gradient: str | None = None,
        constants: dict[int, float] | None = None,
        input_count: int | None = None,
        compiled: bool = False,
        given: dict[int, tuple[int, ...]] | None = None,
    ) -> int:
        """An op on others. `first` is the number of its first listed input, `output` which output they give.

        A matrix product with one listed factor has the batch for the other.
        """
        answers = (passes,) * len(inputs) if isinstance(passes, str) else passes
        edges = tuple(
            Edge(op, output, first + place, answer, False)
            for place, (op, answer) in enumerate(zip(inputs, answers, strict=True))
        )
        source = None
        if line is not None:
            here = Source("/home/me/model.py", 17, "call", line)
            self.sources.extend([here] if here not in self.sources else [])
            source = self.sources.index(here)
        place = self._add(kind, edges, dtype, shape, name=name)
        self.ops[place] = replace(
            self.ops[place],
            source=source,
            api=api,
            writes=None if writes is None else self.place(writes),
            custom_gradient=custom_gradient,
            constants=tuple(Constant(place, value) for place, value in (constants or {}).items()),
            data=any(self.ops[op].data for op in inputs) or (kind == "MatMul" and len(inputs) == 1),
            input_count=input_count,
            compiled=compiled,
            given=tuple(Given(place, size) for place, size in (given or {}).items()),
        )
        return place

    def _add(
        self,
        kind: str,
        edges: tuple[Edge, ...],
        dtype: str,
        shape: tuple[int, ...] | None,
        *,
        name: str | None = None,
        reads: int | None = None,
    ) -> int:
        label = name or f"model/{kind}_{len(self.ops)}"
        self.ops.append(Op(label, kind, edges, (Tensor(shape, dtype),), None, None, reads, None, None, data=False))
        return len(self.ops) - 1

    def target(
        self, op: int, *, loss: float = 0.5, measured: bool = True, scaled: bool = False, automatic: bool | None = None
    ) -> int:
        """A loss; its number."""
        name = f"loss_{len(self.targets)}"
        self.targets.append(Target(name, op, 0, None, "none", scaled, measured, automatic))
        self.losses.append(loss)
        return len(self.targets) - 1

    def ask(
        self,
        name: str,
        row: Row | None = None,
        *,
        outcome: Outcome | None = None,
        target: int = 0,
        watched: bool = True,
    ) -> None:
        """What the tape answered for a variable: the statistics, or none."""
        answer: Outcome = outcome or ("none" if row is None else "value")
        place = None if row is None else self.row(row)
        self.asked.append(VariableGradient(target, self.place(name), answer, place, watched))

    def gradient(self, op: int, row: Row, *, target: int = 0) -> None:
        """The gradient that arrived at the output of an op."""
        self.tensors.append(TensorGradient(target, op, 0, "value", self.row(row)))

    def row(self, row: Row) -> int:
        """The number of a row with these statistics."""
        self.rows.append(row)
        return len(self.rows) - 1

    def trace(self) -> Trace:
        return Trace(
            index=0,
            ops=tuple(self.ops),
            variables=tuple(self.variables),
            targets=tuple(self.targets),
            variable_gradients=tuple(self.asked),
            tensor_gradients=tuple(self.tensors),
            layers=tuple(self.layers),
            sources=tuple(self.sources),
            notes=tuple(self.notes),
            inputs=tuple(self.inputs),
            whole=self.whole,
            failure=self.failure,
        )

    def numbers(self) -> npt.NDArray[np.float32]:
        return np.array(self.rows, np.float32).reshape(-1, 6)

    def weight_numbers(self) -> npt.NDArray[np.float32]:
        """Norms after the step and of the step: 1 and 0.1, unless `weights` says otherwise. Both ends finite, unless
        `nonfinite` counts otherwise."""
        norms = [
            self.weights.get(place, (1.0, 0.1)) + self.nonfinite.get(place, (0.0, 0.0))
            for place in range(len(self.variables))
        ]
        return np.array(norms, np.float32).reshape(-1, 4)

    def measured(self) -> Measured:
        return Measured(Topology(self.trace()), self.numbers(), self.weight_numbers(), tuple(self.losses))

    def diagnose(self, *, expected: tuple[str, ...] = (), measured: bool = True, step: int = 7) -> Diagnosis:
        """What is concluded from one completed step; without `measured`, from the structure alone."""
        session = Session(FORMAT, "0000000000000", "0", "2.21.0", "3.15.0", "model", expected)
        if not measured:
            return diagnose(self.trace(), session, None, None, (), -1)
        return diagnose(self.trace(), session, self.numbers(), self.weight_numbers(), tuple(self.losses), step)

    def only_finding(self) -> Finding:
        """The one finding there is."""
        [finding] = self.diagnose().findings
        return finding


def statuses(diagnosis: Diagnosis) -> dict[str, str]:
    """The status of each variable, by name."""
    return {variable.name: variable.status for variable in diagnosis.variables}
