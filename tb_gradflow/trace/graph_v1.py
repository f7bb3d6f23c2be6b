"""A loss in a `tf.compat.v1` graph, looked at: what `tb_gradflow.explain(loss_tensor, variables=…)` measures.

The graph's own ops, with the lines that made them, are its structure. Gradients are built and run in a copy, so that
the user's graph, and every number drawn in their session, stays as it is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.errors import SetupError
from tb_gradflow.record.schema import Layer, Outcome, StepRecord, Trace
from tb_gradflow.trace.call import Answer, Call
from tb_gradflow.trace.differentiable import is_differentiable_dtype
from tb_gradflow.trace.explained import Explained, session_of
from tb_gradflow.trace.flat_ops import FlatOp, Ref, consumers
from tb_gradflow.trace.gradient_checks import GradientChecks
from tb_gradflow.trace.gradient_probe import RAISED
from tb_gradflow.trace.graph_v1_flatten import GraphFlattener
from tb_gradflow.trace.graph_v1_run import Built, build, norms_of, run, statistics_of
from tb_gradflow.trace.graph_v1_values import CannotMeasureError, Values, values_for
from tb_gradflow.trace.graph_v1_variables import GraphVariables
from tb_gradflow.trace.own_gradients import OwnGradient, own_gradient
from tb_gradflow.trace.reach import influenced_by, needed_for
from tb_gradflow.trace.structure import trace_of
from tb_gradflow.trace.variables import Variables


@dataclass(slots=True)
class _Seen:
    """As `structure.Looked`."""

    calls: list[Call]
    variables: Variables
    layers: dict[str, Layer] = field(default_factory=dict)
    by_tape: bool = False
    unscaled: bool = False


def is_graph_tensor(value: Any) -> bool:
    """Whether a value is a tensor of a graph, and not a number that is known."""
    return isinstance(value, tf.Tensor) and not isinstance(value, tf.__internal__.EagerTensor)


def explain_graph(loss: Any, variables: Sequence[Any] | None, feed_dict: Mapping[Any, Any] | None) -> Explained:
    """The gradient of `loss`, a tensor of a `tf.compat.v1` graph, with respect to `variables`: by default the graph's
    trainable ones.

    Measured if there is a default session in which everything that the loss needs is known; otherwise the structure
    alone is told, with the reason in the trace's notes.
    """
    if hasattr(loss.graph, "captures"):
        raise SetupError(
            f"the loss {loss.name} belongs to a `tf.function` that is being traced: call `explain` outside of it, with "
            "a function that computes the loss"
        )
    if not loss.dtype.is_floating:
        raise SetupError(f"the loss {loss.name} is {loss.dtype.name}: only floating tensors have gradients")
    asked = loss.graph.get_collection("trainable_variables") if variables is None else variables
    step = _Step(loss, GraphVariables(loss.graph, asked))
    try:
        values, note = values_for(loss, feed_dict), ""
    except CannotMeasureError as reason:
        values, note = None, str(reason)
    return step.explained(values, note)


class _Step:
    """One look at one loss."""

    def __init__(self, loss: Any, variables: GraphVariables) -> None:
        self._loss = loss
        self._variables = variables
        self._checks = GradientChecks()
        flattener = GraphFlattener(loss.graph, variables.of_handle)
        flattener.extend()
        for index, tensor in variables.tensors():
            flattener.mark_tensor(tensor, index)
        target = flattener.ref(loss)
        asked = frozenset(index for index, _ in variables.sources())
        self._call = Call(flattener, () if target is None else (target,), None, (), "none", asked)

    def explained(self, values: Values | None, note: str) -> Explained:
        """Without `values` the structure alone, and `note` says why."""
        built = build(self._loss, dict(self._variables.sources()), self._on_the_way(), self._own_gradients())
        self._checks.probes.update(built.probes)
        self._answer(built)
        fetched: dict[str, Any] = {}
        record = None
        if built.error is not None and not _is_an_answer(built):
            said = (str(built.error).strip().splitlines() or [""])[0]
            note = f"`tf.gradients` raises {type(built.error).__name__} for this loss: {said}"
        elif built.error is None and values is not None:
            try:
                fetched = run(built, values, self._fetches(built))
                record = self._record(fetched, values)
            except CannotMeasureError as reason:
                note = str(reason)
        trace = self._checks.filled(self._trace(note), fetched)
        return Explained(session_of(self._loss.op.name), trace, record)

    def _on_the_way(self) -> dict[Ref, Any]:
        """The tensors between variables and loss whose gradient can be asked for: those in branches and loops of
        TensorFlow 1 live in frames of their own."""
        ops = self._call.flattener.ops
        start = [index for index, op in enumerate(ops) if op.reads is not None]
        needed = needed_for(ops, [ref.op for ref in self._call.targets])
        return {
            Ref(index, number): tensor
            for index in sorted(influenced_by(ops, consumers(ops), start) & needed)
            if _is_at_the_top(ops[index])
            for number, tensor in enumerate(ops[index].tensors)
            if is_differentiable_dtype(tensor) and tensor.dtype not in (tf.resource, tf.variant)
            if not tensor.dtype._is_ref_dtype
        }

    def _own_gradients(self) -> list[OwnGradient]:
        ops = self._call.flattener.ops
        needed = needed_for(ops, [ref.op for ref in self._call.targets])
        listed = [own_gradient(ops[index].op, by_tape=False) for index in sorted(needed) if _is_at_the_top(ops[index])]
        return [own for own in listed if own is not None]

    def _answer(self, built: Built) -> None:
        """Numbers the rows: variables, then tensors on the way."""
        outcome: Outcome = "none" if built.error is None else "error" if _is_an_answer(built) else "value"
        rows = iter(range(len(built.variables) + len(built.tensors)))
        for index, gradient in built.variables.items():
            self._call.variables[index] = Answer(outcome, None) if gradient is None else Answer("value", next(rows))
        for ref, gradient in built.tensors.items():
            self._call.tensors[ref] = Answer(outcome, None) if gradient is None else Answer("value", next(rows))

    def _fetches(self, built: Built) -> dict[str, Any]:
        gradients = [each for each in (*built.variables.values(), *built.tensors.values()) if each is not None]
        numbered = {f"gradient/{row}": gradient for row, gradient in enumerate(gradients)}
        return {"loss": built.loss, **numbered, **self._checks.fetches()}

    def _record(self, fetched: Mapping[str, Any], values: Values) -> StepRecord:
        rows = [statistics_of(value) for name, value in fetched.items() if name.startswith("gradient/")]
        norms = [norms_of(values.variables.get(tensor.op.name, ())) for _, tensor in self._variables.sources()]
        return StepRecord(
            trace=0,
            step=0,
            wall_time=time.time(),
            losses=(float(np.sum(fetched["loss"])),),
            gradients=np.array(rows, "<f4").tobytes(),
            variables=np.array(norms, "<f4").tobytes(),
        )

    def _trace(self, note: str) -> Trace:
        trace = trace_of(_Seen([self._call], self._variables), 0)
        return replace(trace, notes=(*trace.notes, note) if note else trace.notes)


def _is_an_answer(built: Built) -> bool:
    """Whether the exception says something of the graph: no gradient is registered, or one of the user's own raised."""
    raised = any(probe.problem.startswith(RAISED) for probe in built.probes.values())
    return isinstance(built.error, LookupError) or raised


def _is_at_the_top(op: FlatOp) -> bool:
    return not op.nested and op.writes is None
