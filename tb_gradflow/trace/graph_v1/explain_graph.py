"""Analyses a loss in a `tf.compat.v1` graph, for `tb_gradflow.explain(loss_tensor, variables=…)`.

The structure comes from the graph's own ops and the lines that created them. Gradients are built and run in a copy, so
that the user's graph, and every random number drawn in the user's session, stays the same.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tb_gradflow.errors import SetupError
from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS, Outcome, StepRecord, Trace
from tb_gradflow.trace.custom_gradient_checks.probe import RAISED
from tb_gradflow.trace.custom_gradient_checks.step_checks import GradientChecks
from tb_gradflow.trace.explain.explanation import Explained
from tb_gradflow.trace.graph.build_trace import Looked, trace_of
from tb_gradflow.trace.graph.custom_gradients import OwnGradient, own_gradient
from tb_gradflow.trace.graph.differentiable import Differentiability
from tb_gradflow.trace.graph.flat_ops import Ref, consumers
from tb_gradflow.trace.graph.gradient_call import UNMEASURED, Answer, Call, TermAnswers
from tb_gradflow.trace.graph.reach import influenced_by, needed_for
from tb_gradflow.trace.graph.variables import listed_sources
from tb_gradflow.trace.graph_v1.feeding import feeding_kept
from tb_gradflow.trace.graph_v1.flat_ops_v1 import GraphFlattener, has_gradient, is_at_the_top
from tb_gradflow.trace.graph_v1.gradients_v1 import Built, build, norms_of, run, statistics_of
from tb_gradflow.trace.graph_v1.terms_v1 import measured_terms
from tb_gradflow.trace.graph_v1.updates_v1 import Ran, Update, movement_of, movements, run_updates, updates_among
from tb_gradflow.trace.graph_v1.values_v1 import CannotMeasureError, Values, to_be_fed, values_for, with_values_of
from tb_gradflow.trace.graph_v1.variables_v1 import GraphVariables
from tb_gradflow.trace.log.recorder import new_session, record_of
from tb_gradflow.trace.numerics.statistics_table import Block, StatisticsTable


def explain_graph(
    loss: Any, variables: Sequence[Any] | None, feed_dict: Mapping[Any, Any] | None, *, terms: bool = True
) -> Explained:
    """The gradient of `loss`, a tensor of a `tf.compat.v1` graph, with respect to `variables`: by default the graph's
    trainable ones.

    The gradient is measured if there is a default session in which everything that the loss needs is known; otherwise
    only the structure is reported, with the reason in the trace's notes.
    """
    if hasattr(loss.graph, "captures"):
        raise SetupError(
            f"the loss {loss.name} belongs to a `tf.function` that is being traced: call `explain` outside of it, with "
            "a function that computes the loss"
        )
    if not loss.dtype.is_floating:
        raise SetupError(f"the loss {loss.name} is {loss.dtype.name}: only floating tensors have gradients")
    requested = loss.graph.get_collection("trainable_variables") if variables is None else variables
    with feeding_kept(loss.graph):
        step = _Step(loss, GraphVariables(loss.graph, listed_sources(requested)), terms=terms)
        try:
            return step.explained(values_for(loss, feed_dict))
        except CannotMeasureError as reason:
            return step.unmeasured(str(reason))


class _Step:
    """One analysis of one loss."""

    def __init__(self, loss: Any, variables: GraphVariables, *, terms: bool) -> None:
        self._loss = loss
        self._asks_terms = terms
        self._variables = variables
        self._checks = GradientChecks()
        flattener = GraphFlattener(loss.graph, variables.of_handle)
        flattener.extend()
        for index, tensor in variables.tensors():
            flattener.mark_tensor(tensor, index)
        target = flattener.ref(loss)
        asked = frozenset(index for index, _ in variables.sources())
        self._call = Call(flattener, () if target is None else (target,), None, (), "none", asked)
        self._term_rows = Block()
        self._rows = StatisticsTable([self._call.rows, self._term_rows])

    def explained(self, tries: Iterable[Values]) -> Explained:
        """The result for the first of these values that gives one. Raises CannotMeasureError if none does."""
        reason = ""
        built = self._built
        for values in tries:
            if built.error is not None and not built.is_partial:
                return self.unmeasured("")
            try:
                # Invented inputs say nothing about single terms.
                terms = TermAnswers() if values.invented else self._terms
                fetched = run(built, values, self._fetches(built, terms))
            except CannotMeasureError as error:
                reason = to_be_fed(values.invented) if values.invented else str(error)
                continue
            moved = [] if values.invented else self._updates(values)
            record = self._record(fetched, values, moved)
            if values.invented and not self._is_plain(record):
                reason = to_be_fed(values.invented)
                continue
            self._call.terms = terms
            arrives = any(answer.row is not None for answer in self._call.variables.values())
            notes = [values.note, _invention(values.invented) if arrives else "", _IN_PART if built.is_partial else ""]
            trace = self._checks.filled(self._trace(notes, moved), fetched)
            return Explained(new_session(self._loss.op.name), trace, record)
        raise CannotMeasureError(reason)

    def _updates(self, values: Values) -> list[tuple[Update, Ran]]:
        """What the optimizers in the graph do to the variables, as far as they can be run."""
        updates = updates_among(self._loss.graph.get_operations(), dict(self._variables.sources()))
        if not updates:
            return []
        try:
            ran = run_updates(self._built, with_values_of(values, [update.op for update in updates]), updates)
        except CannotMeasureError:
            return []
        return list(zip(updates, ran, strict=True))

    def unmeasured(self, note: str) -> Explained:
        """The result from the structure alone, and why no more was measured."""
        built = self._built
        if built.error is not None and not _is_an_answer(built):
            said = (str(built.error).strip().splitlines() or [""])[0]
            note = f"`tf.gradients` raises {type(built.error).__name__} for this loss: {said}"
        elif built.error is not None:
            note = ""
        trace = self._checks.filled(self._trace([note], []), {})
        return Explained(new_session(self._loss.op.name), trace, None)

    @functools.cached_property
    def _built(self) -> Built:
        sources = dict(self._variables.sources())
        built = build(self._loss, sources, self._on_the_way(), self._own_gradients(), self._raising)
        self._checks.probes.update(built.probes)
        self._answer(built)
        return built

    @functools.cached_property
    def _terms(self) -> TermAnswers:
        if not self._asks_terms or self._built.error is not None:
            return TermAnswers()
        sources = dict(self._variables.sources())
        try:
            return measured_terms(self._loss, self._call.flattener, self._moved, sources, self._built, self._term_rows)
        except Exception as error:  # only the terms are missing from the report
            self._term_rows.drop_waiting()
            return TermAnswers(problem=f"{UNMEASURED} {type(error).__name__}: {error}")

    @functools.cached_property
    def _needed(self) -> list[int]:
        """The flat ops that the loss is computed with, as far as gradients can be requested there."""
        ops = self._call.flattener.ops
        needed = needed_for(ops, [ref.op for ref in self._call.targets])
        return [index for index in sorted(needed) if is_at_the_top(ops[index])]

    @functools.cached_property
    def _moved(self) -> set[int]:
        """The flat ops that depend on a variable."""
        ops = self._call.flattener.ops
        return influenced_by(ops, consumers(ops), [index for index, op in enumerate(ops) if op.reads is not None])

    def _raising(self) -> list[Any]:
        """The ops for which TensorFlow has no gradient."""
        known = Differentiability(calls_users=True)
        listed = [self._call.flattener.ops[index].op for index in self._needed]
        return [op for op in listed if "unregistered" in known.of(op, by_tape=False)]

    def _is_plain(self, record: StepRecord) -> bool:
        """Whether all gradients that arrive are neither zero nor large nor broken: with invented numbers, nothing else
        can be concluded.
        """
        rows = np.frombuffer(record.gradients, "<f4").reshape(-1, len(GRADIENT_STATISTICS))
        number_of = self._rows.numbers()
        arrived = [number_of(answer.row) for answer in self._call.variables.values() if answer.row is not None]
        sizes = rows[arrived, GRADIENT_STATISTICS.index("max_abs")]
        broken = rows[:, GRADIENT_STATISTICS.index("nan_count") :].any()
        return not broken and bool(np.all((sizes > _PLAIN[0]) & (sizes < _PLAIN[1]))) and np.isfinite(record.losses[0])

    def _on_the_way(self) -> dict[Ref, Any]:
        """The tensors between variables and loss whose gradient can be requested."""
        return {
            Ref(index, number): tensor
            for index in self._needed
            if index in self._moved
            for number, tensor in enumerate(self._call.flattener.ops[index].tensors)
            if has_gradient(tensor)
        }

    def _own_gradients(self) -> list[OwnGradient]:
        listed = [own_gradient(self._call.flattener.ops[index].op, by_tape=False) for index in self._needed]
        return [own for own in listed if own is not None]

    def _answer(self, built: Built) -> None:
        """Keeps the results. Their rows come in the order of `_fetches`."""
        missing: Outcome = "none" if built.error is None else "error" if _is_an_answer(built) else "value"
        rows = self._call.rows
        for index, gradient in built.variables.items():
            self._call.variables[index] = Answer(missing, None) if gradient is None else Answer("value", rows.add())
        for ref, gradient in built.tensors.items():
            self._call.tensors[ref] = Answer(missing, None) if gradient is None else Answer("value", rows.add())

    def _fetches(self, built: Built, terms: TermAnswers) -> dict[str, Any]:
        rows = {"terms": self._term_rows.tensor} if terms.terms else {}
        gradients = [each for each in (*built.variables.values(), *built.tensors.values()) if each is not None]
        numbered = {f"gradient/{row}": gradient for row, gradient in enumerate(gradients)}
        return {"loss": built.loss, **numbered, **rows, **self._checks.fetches()}

    def _record(self, fetched: Mapping[str, Any], values: Values, moved: Sequence[tuple[Update, Ran]]) -> StepRecord:
        rows = [statistics_of(value) for name, value in fetched.items() if name.startswith("gradient/")]
        rows += [list(row) for row in fetched.get("terms", ())]
        rows += [movement_of(update, ran) for update, ran in moved]
        norms = [norms_of(values.variables.get(tensor.op.name, ())) for _, tensor in self._variables.sources()]
        for update, ran in moved:
            norms[update.variable][VARIABLE_STATISTICS.index("update_norm")] = float(
                np.linalg.norm(ran.after - ran.before)
            )
        return record_of({"losses": np.sum(fetched["loss"]), "gradients": rows, "variables": norms}, 0)

    def _trace(self, notes: Sequence[str], moved: Sequence[tuple[Update, Ran]]) -> Trace:
        trace = trace_of(Looked([self._call], self._variables, self._rows, by_tape=False), 0)
        updates = [update for update, _ in moved]
        return replace(
            trace,
            notes=(*trace.notes, *filter(None, notes)),
            optimizers=tuple(update.optimizer for update in updates),
            movements=movements(updates, self._rows),
        )


# Gradients of invented numbers in this range show that a gradient arrives, and need no further comment.
_PLAIN = (1e-6, 1e3)

_IN_PART = (
    "`tf.gradients` raises for this loss. The gradients that do not pass through the op without a gradient were "
    "measured."
)


def _invention(names: Sequence[str]) -> str:
    if not names:
        return ""
    listed = " and ".join(f"`{name}`" for name in names)
    verb = "was" if len(names) == 1 else "were"
    return (
        f"{listed} {verb} not fed, so random numbers were used instead: they show whether a gradient arrives, but "
        "not how large yours is. Pass `feed_dict` for that."
    )


def _is_an_answer(built: Built) -> bool:
    """Whether the exception is about the graph: no gradient is registered, or a custom gradient raised."""
    raised = any(probe.problem.startswith(RAISED) for probe in built.probes.values())
    return isinstance(built.error, LookupError) or raised
