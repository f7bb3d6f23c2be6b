"""Runs one real training step for `tb_gradflow.explain`, measures it, and rolls it back.

The step is compiled, like the steps of `fit`, and runs on copies of the variables; or it runs eagerly, if TensorFlow
cannot compile it or the model requests it. Everything that it changes is restored: weights, optimizer, metrics, random
state, attributes that held variables.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx

from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.not_computed import ops_that_raise
from tb_gradflow.analyse.step.status import states
from tb_gradflow.errors import SetupError
from tb_gradflow.record.report import ExampleGradients
from tb_gradflow.record.schema import PYTHON, SNAPSHOT, VARIABLE_STATISTICS, MetricTrial, StepRecord, StepValues, Trace
from tb_gradflow.trace.capture.requested_tensors import user_frame, was_variable, written_sources
from tb_gradflow.trace.custom_gradient_checks.step_checks import GradientChecks
from tb_gradflow.trace.eager.compilability import decisions, kept_inside, sentence_of
from tb_gradflow.trace.engine.repeated import NotCompiled
from tb_gradflow.trace.experiments.metric_trials import metric_trials
from tb_gradflow.trace.experiments.training import Training
from tb_gradflow.trace.explain.examples import gradients_of_rows
from tb_gradflow.trace.explain.explanation import Explained
from tb_gradflow.trace.explain.first_values import give_first_values
from tb_gradflow.trace.explain.run_mode import Plan, compiled_once, functions_compiled
from tb_gradflow.trace.explain.traced_step import TracedStep
from tb_gradflow.trace.fidelity.object_graph import name_of
from tb_gradflow.trace.fidelity.rollback import undone
from tb_gradflow.trace.fit.keras2 import check_backend
from tb_gradflow.trace.graph.build_trace import with_requested
from tb_gradflow.trace.graph.differentiable import is_differentiable_dtype
from tb_gradflow.trace.graph.variables import (
    GivenTensor,
    Owned,
    Variables,
    is_trainable,
    listed_sources,
    raw_variable,
)
from tb_gradflow.trace.log.raised import with_failure, with_raised
from tb_gradflow.trace.log.recorder import index_of, new_session, record_of
from tb_gradflow.trace.observed.kept_step import check_effects
from tb_gradflow.trace.protection.attention import left_alone
from tb_gradflow.trace.source.frames import Frame, stack_now
from tb_gradflow.trace.source.kept_numbers import KeptNumbers
from tb_gradflow.trace.source.variable_names import names_in
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep, owned_variables
from tb_gradflow.trace.step.named_inputs import arguments_of, batch_of_keras
from tb_gradflow.trace.step.settings import Settings
from tb_gradflow.trace.tf_internals.captured_tensors import passed_on
from tb_gradflow.trace.tf_internals.raised_by import is_index_outside


@left_alone()
def explain_model(
    model: Any,
    x: Any,
    y: Any,
    sample_weight: Any,
    batch_size: int | None,
    *,
    examples: bool = False,
    terms: bool = True,
    trains: bool = False,
) -> Explained:
    """One training step of a compiled Keras model on the first `batch_size` rows, or on all of them. With `terms` also
    the gradient of each term of its loss, with `examples` also that of each row, and with `trains` what can train it.
    """
    _check_model(model)
    if not model.compiled:
        raise SetupError(f"the model {model.name!r} is not compiled: call `model.compile(...)` first")
    if model.distribute_strategy.num_replicas_in_sync > 1 and tf.distribute.in_cross_replica_context():
        raise SetupError("explain runs one step on one device: call it outside of `strategy.scope()`")
    rows = _first_rows((x, y, sample_weight), batch_size)
    _build(model, rows)
    plan = _plan_of(model, keras.utils.pack_x_y_sample_weight(*rows), terms=terms, trains=trains)
    found = _with_batch(_explained(plan, eagerly=bool(model.run_eagerly)), plan, model, rows)
    found = found if model.run_eagerly else _with_kept_numbers(found)
    return replace(found, examples=_examples_of_model(plan, model, rows)) if examples else found


def _with_kept_numbers(found: Explained) -> Explained:
    """The same with the Python numbers that the step only updates while it is compiled."""
    numbers, record = KeptNumbers(found.trace).news(), found.record
    if not numbers or record is None:
        return found
    values = record.values or StepValues(record.step, -1, ())
    return replace(found, record=replace(record, values=replace(values, kept_numbers=numbers)))


@left_alone()
def explain_batch(model: Any, batch: Any) -> Explained:
    """One training step of a Keras model that has been trained, on a batch as its `train_step` is given it, and what
    can train it."""
    _check_model(model)
    give_first_values(model)
    try:
        rows = keras.utils.unpack_x_y_sample_weight(batch)
    except ValueError:  # a batch in the user's own form
        rows = ()
    plan = _plan_of(model, batch, terms=False, trains=True)
    return _with_batch(_explained(plan, eagerly=False), plan, model, rows)


def _with_batch(explained: Explained, plan: Plan, model: Any, rows: Sequence[Any]) -> Explained:
    """The same; what trains it knows what the model is given, and what its predictions are compared with; with what the
    accuracies of the model say."""
    inputs, labels = (
        [each for each in tf.nest.flatten(part) if isinstance(each, tf.Tensor)] for part in (rows[:1], rows[1:2])
    )
    if explained.training is None or len(tf.nest.flatten(rows[:1])) != len(inputs):
        return explained

    @left_alone()
    def metrics() -> tuple[MetricTrial, ...]:
        with plan.undone():
            return metric_trials(model, rows)

    return replace(explained, training=replace(explained.training, inputs=inputs, labels=labels), metrics=metrics)


@left_alone()
def explain_step(step: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], name: str) -> Explained:
    """One call of a training step that has its own tape, and what can train it."""
    converted = tf.__internal__.autograph.tf_convert(step, ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED))
    plan = _plan_of_step(
        step,
        name,
        traced=functools.partial(converted, **kwargs),
        compiled=lambda traced: compiled_once(traced)(*args),
        eager=functools.partial(step, **kwargs),
        args=tuple(args),
    )
    found = _explained(plan, eagerly=False)
    return replace(found, trace=with_requested(found.trace))


@left_alone()
def explain_statements(step: Callable[[], Any], name: str) -> Explained:
    """One run of the statements of an eager step, compiled, and what can train it.

    Raises:
        NotCompiled: it cannot be compiled.
        NotRepeatable: it does something that lasts.
    """

    def compiled(traced: Callable[..., Any]) -> Any:
        function = compiled_once(traced).get_concrete_function()
        check_effects(function)
        return function()

    plan = _plan_of_step(step, name, traced=step, compiled=compiled, eager=step, args=())
    found = _Seen(plan, eager=False)
    if found.error is not None and not found.raised_inside:
        raise NotCompiled(f"as a compiled step it raises {type(found.error).__name__}") from found.error
    return replace(found.explained, trace=with_requested(found.explained.trace))


def _plan_of_step(
    step: Callable[..., Any],
    name: str,
    *,
    traced: Callable[..., Any],
    compiled: Callable[[Callable[..., Any]], Any],
    eager: Callable[..., Any],
    args: tuple[Any, ...],
) -> Plan:
    """That of a step that has its own tape."""
    return Plan(
        traced=traced,
        compiled=compiled,
        eager=eager,
        args=args,
        variables=lambda: Variables(meets=is_trainable, called=functools.partial(names_in, [step])),
        name=name,
        inputs=arguments_of(step),
        undone=lambda: undone([], [step]),
        terms=False,
        trains=True,
    )


def _plan_of(model: Any, batch: Any, *, terms: bool, trains: bool) -> Plan:
    def compiled(step: Callable[..., Any]) -> Any:
        several = model.distribute_strategy.num_replicas_in_sync > 1
        if several or not hasattr(model, "_make_function"):  # before Keras 3.7
            # The sum of the replicas' gradients equals the gradient that one device computes for the whole batch.
            return compiled_once(step)(batch)
        eagerly, model.run_eagerly = model.run_eagerly, False
        try:
            return model._make_function(step)(iter([batch]))
        finally:
            model.run_eagerly = eagerly

    return Plan(
        traced=model.train_step,
        compiled=compiled,
        eager=model.train_step,
        args=(batch,),
        variables=lambda: owned_variables(model),
        name=str(model.name),
        inputs=batch_of_keras,
        undone=lambda: undone(_state_of(model), [model]),
        terms=terms,
        trains=trains,
    )


def _examples_of_model(plan: Plan, model: Any, rows: Any) -> ExampleGradients:
    if type(model).train_step is not keras.Model.train_step or "train_step" in vars(model):
        reason = "the model has a custom `train_step`: pass its loss to `explain` as a function"
        return ExampleGradients((), None, reason)

    def differentiate(x: Any, y: Any, sample_weight: Any) -> Any:
        with tf.GradientTape() as tape:
            predicted = model(x, training=True)
            loss = model.compute_loss(x=x, y=y, y_pred=predicted, sample_weight=sample_weight, training=True)
        return tape.gradient(loss, [variable.value for variable in model.trainable_variables])

    with plan.undone():
        return gradients_of_rows(differentiate, rows)


def _check_model(model: Any) -> None:
    if isinstance(model, keras.Model):
        check_backend("explain")
        return
    kind = f"{type(model).__module__.partition('.')[0]}.{type(model).__qualname__}"
    if hasattr(model, "train_step"):
        raise SetupError(f"explain takes Keras 3 models, and this is a {kind}: use GradFlowCallback in its `fit`")
    if callable(model):
        raise SetupError(
            "explain got a function, but no variables: pass its arguments and the variables, `explain(loss_fn, "
            "args=(x, y), variables=model.trainable_variables)`"
        )
    raise SetupError(f"explain takes a compiled Keras model or a function that returns a loss, got a {kind}")


@left_alone()
def explain_function(
    loss_fn: Callable[..., Any],
    args: Sequence[Any],
    variables: Any,
    *,
    examples: bool = False,
    terms: bool = False,
    trains: bool = False,
) -> Explained:
    """One gradient of `loss_fn(*args)` with respect to `variables`: variables and tensors. With `terms` also the
    gradient of each term of the loss, with `examples` also that of each row, and with `trains` what can train it.
    """
    listed = listed_sources(variables)
    owned = _sources(listed, variables)
    tensors = {
        id(given): item.source
        for given, item in zip(listed, owned, strict=True)
        if isinstance(item.variable, GivenTensor)
    }

    # The user's code is converted as by `tf.function`; the recorder around it is not.
    enabled = ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED)
    converted = tf.__internal__.autograph.tf_convert(loss_fn, enabled)

    def step(function: Callable[..., Any], *arguments: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([item.source for item in owned if _is_to_be_watched(item)])
            # A tensor that is both an argument and a source must be one tensor, not the placeholder that a compiled
            # step has for it.
            arguments = tf.nest.map_structure(
                lambda whole, part: _in_step(tensors[id(whole)]) if id(whole) in tensors else part,
                tuple(args),
                arguments,
                check_types=False,
                expand_composites=True,
            )
            loss = _differentiable(function(*arguments))
        gradients = tape.gradient(loss, [item.source for item in owned])
        return (loss, gradients) if trains else loss

    def compiled(traced: Callable[..., Any]) -> Any:
        with passed_on(tensors.values()):
            return compiled_once(traced)(*args)

    plan = Plan(
        traced=functools.partial(step, converted),
        compiled=compiled,
        eager=functools.partial(step, loss_fn),
        args=tuple(args),
        variables=lambda: _called_by(loss_fn, Variables(lambda: owned)),
        name=getattr(loss_fn, "__name__", "loss"),
        inputs=arguments_of(loss_fn),
        undone=lambda: undone([item.variable for item in owned], [loss_fn]),
        terms=terms,
        trains=trains,
        descended=[item.variable for item in owned],
    )
    found = _explained(plan, eagerly=False)
    found = replace(found, trace=replace(found.trace, whole=False))
    return replace(found, examples=_examples_of_function(plan, converted, owned)) if examples else found


def _called_by(loss_fn: Any, variables: Variables) -> Variables:
    """The variables, those without a name by what the loss function calls them, or else the functions around."""
    variables.find_names(functools.partial(names_in, [loss_fn]))
    variables.find_names()
    return variables


def _examples_of_function(plan: Plan, loss_fn: Callable[..., Any], owned: Sequence[Owned]) -> ExampleGradients:
    if any(isinstance(item.variable, GivenTensor) for item in owned):
        return ExampleGradients(
            (), None, ("a gradient is requested for tensors, and these may contain rows of the batch")
        )

    def differentiate(*arguments: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_fn(*arguments)
        return tape.gradient(loss, [item.variable for item in owned])

    with plan.undone():
        return gradients_of_rows(differentiate, plan.args)


def _in_step(tensor: Any) -> Any:
    """Represents an eager tensor in the step: Python cannot read its value in a compiled one."""
    return tensor if tf.executing_eagerly() else tf.compat.v1.get_default_graph().capture(tensor)


def _differentiable(loss: Any) -> Any:
    """The return value of a loss function in the form that a tape accepts: a Python number is treated like one that was
    converted to a tensor again, a tensor from before the step like a copy of it, and a variable stays a variable.
    """
    if isinstance(raw_variable(loss), tf.Variable):
        return raw_variable(loss)
    if tf.executing_eagerly() and not isinstance(loss, tf.Tensor):
        return tf.identity(tf.cast(loss, tf.float32))
    if not tf.executing_eagerly() and isinstance(loss, tf.__internal__.EagerTensor):
        return tf.identity(loss)
    return loss


def _sources(listed: Sequence[Any], variables: Any) -> list[Owned]:
    """Variables and tensors by their names at the user's call of `explain`."""
    frame = user_frame(stack_now())
    written: Sequence[str | None] = [None] * len(listed)
    if frame is not None:
        known = written_sources(frame, ("explain",), ("variables",), -1, variables)
        written = known if len(known) == len(listed) else written
    return [_owned(each, name, place, frame) for place, (each, name) in enumerate(zip(listed, written, strict=True))]


def _is_to_be_watched(item: Owned) -> bool:
    """Whether the tape must explicitly watch a source: a differentiable tensor, unless it has replaced a variable,
    which the user's own tape would not watch either.
    """
    given = isinstance(item.variable, GivenTensor)
    return given and not item.rebound and is_differentiable_dtype(item.source)


# Words for XLA in TensorFlow's errors.
_XLA = ("XLA", "tf2xla")


def _explained(plan: Plan, *, eagerly: bool) -> Explained:
    """The result of the step; if it raises after a gradient was requested, everything that can still be measured."""
    explained = _seen(plan, eagerly=eagerly)
    if tf.config.functions_run_eagerly() and any(each.used for each in explained.trace.overrides):
        explained = _noted(explained, _WITHOUT_OVERRIDES)
    if explained.record is not None:
        return explained
    return _measured_in_part(plan, explained) if explained.trace.targets else explained


def _measured_in_part(plan: Plan, raised: Explained) -> Explained:
    """The gradients that do not pass through an op whose gradient raises, and those that were requested together with
    missing ones: measured in the same step, with zeros for the missing ones.
    """
    topology = Topology(raised.trace)
    names = [raised.trace.ops[op].name.partition("@")[0] for op in ops_that_raise(topology)]
    around = _Seen(plan, eager=False, barriers=frozenset(names))
    if around.error is not None or not any(each.row is not None for each in around.explained.trace.variable_gradients):
        return raised
    found = around.explained
    assert found.record is not None
    failed = {
        state.variable for state in states(topology, Measured(topology, None, None, ())) if state.status == "error"
    }
    entries = (
        replace(each, outcome="error", row=None) if each.variable in failed and each.outcome != "not_asked" else each
        for each in found.trace.variable_gradients
    )
    compiled = {op.name for op in raised.trace.ops if op.compiled}
    trace = replace(
        found.trace,
        ops=tuple(replace(op, compiled=op.name in compiled) for op in found.trace.ops),
        failure=raised.trace.failure,
        notes=(*raised.trace.notes, _IN_PART),
        variable_gradients=tuple(entries),
    )
    return replace(found, trace=trace, record=_without_updates(found.record), raised=raised.raised)


_WITHOUT_OVERRIDES = (
    "This report describes the compiled step. The program runs functions eagerly, where TensorFlow ignores "
    "`gradient_override_map`."
)
_IN_PART = (
    "The step raises an error. The gradients that do not depend on it were measured, with zeros in place of the "
    "missing ones."
)


def _without_updates(record: StepRecord) -> StepRecord:
    """Drops the statistics of a step that changed the variables differently from the user's own step."""
    norms = np.frombuffer(record.variables, "<f4").reshape(-1, len(VARIABLE_STATISTICS)).copy()
    for statistic in ("update_norm", "nonfinite_after"):
        norms[:, VARIABLE_STATISTICS.index(statistic)] = np.nan
    return replace(record, variables=norms.tobytes())


def _seen(plan: Plan, *, eagerly: bool) -> Explained:
    """The result of the step, compiled if that is possible and intended."""
    if eagerly:
        return _eager(plan)
    seen = _Seen(plan, eager=False)
    if seen.error is None and seen.is_taken_by_python:
        again = _Seen(plan, eager=True)
        if again.error is None and any(op.type == PYTHON for op in again.explained.trace.ops):
            return again.explained
    if seen.error is None and seen.kept:
        again = _Seen(plan, eager=True)
        return again.explained_without(seen.kept) if again.error is None else seen.explained
    if seen.error is None or isinstance(seen.error, LookupError) or "No gradients provided" in str(seen.error):
        return seen.explained
    if seen.has_traces and is_index_outside(seen.error):
        return seen.explained
    if seen.is_refused_by_xla:
        return seen.explained_with_failure
    again = _Seen(plan, eager=True)
    if again.error is None:
        return again.explained_instead_of(seen.error)
    # It raises in both modes. If it raised after a gradient was taken, the graph contains more than the ops that ran; a
    # step that was traced completely and then failed to run is reported to the user.
    if seen.raised_inside:
        return seen.explained
    return again.explained_with_failure if again.failed_at_gradient else again.explained


def _eager(plan: Plan) -> Explained:
    """The result of a step that is meant to run eagerly.

    To see inside a compiled function in it, or what a branch that was not taken computes, the step is also traced,
    if possible; and to train it, if it then has the same losses.
    """
    with decisions() as taken:
        explained = _Seen(plan, eager=True).explained
    is_known = explained.trace.targets and not (taken and _has_unread(explained.trace))
    if is_known and not plan.trains:
        return explained
    traced = _Seen(plan, eager=False)
    if traced.error is not None:
        return explained
    if not is_known:
        return traced.explained
    compiled = traced.explained
    return replace(explained, training=compiled.training) if _have_same_losses(explained, compiled) else explained


def _have_same_losses(one: Explained, other: Explained) -> bool:
    if one.record is None or other.record is None or len(one.record.losses) != len(other.record.losses):
        return False
    return np.allclose(one.record.losses, other.record.losses, rtol=1e-3, atol=1e-7, equal_nan=True)


def _has_unread(trace: Trace) -> bool:
    """Whether a gradient was requested for a variable that the step does not read."""
    asked = {each.variable for each in trace.variable_gradients if each.outcome == "none"}
    return not asked <= {op.reads for op in trace.ops}


class _Seen:
    """One run of a step: its trace, and its statistics or its error.

    Attributes:
        error: The exception; None if it was completed.
        kept: Python's conversions that stayed in TensorFlow because the step was traced.
    """

    def __init__(self, plan: Plan, *, eager: bool, barriers: frozenset[str] | None = None) -> None:
        self._eager = eager
        self.error: Exception | None = None
        self._session = new_session(plan.name)
        self._traces: list[Trace] = []
        self._is_complete = False
        self._values: dict[str, Any] = {}
        self._training: Training | None = None
        self._checks = GradientChecks()
        how = contextlib.nullcontext() if eager else functions_compiled()
        with plan.undone() as bindings, kept_inside() as self.kept, how:
            try:
                if eager:
                    self._run_eagerly(plan)
                else:
                    self._run_compiled(plan, barriers)
            except Exception as error:
                self.error = error
            lost = bindings.rebound()
        self._rebound = {item.name: lost[id(item.variable)] for item in plan.variables() if id(item.variable) in lost}

    def _run_eagerly(self, plan: Plan) -> None:
        settings = Settings(checks=self._checks, terms=plan.terms)
        instrumented = InstrumentedStep(plan.eager, plan.variables, settings, self._on_trace, plan.inputs)
        _, self._values = instrumented(*plan.args)

    def _run_compiled(self, plan: Plan, barriers: frozenset[str] | None) -> None:
        step = TracedStep(plan, self._checks, barriers)
        try:
            step.run()
        finally:
            self._traces += [] if step.trace is None else [step.trace]
            self._is_complete, self._values, self._training = step.is_complete, step.measured, step.training

    @property
    def is_taken_by_python(self) -> bool:
        """Whether a value was computed from a tensor for which a gradient was requested, but not in the compiled step:
        before it, or in Python, which can read an eager tensor at any time.
        """
        trace = self._traces[-1]
        readers = [op for op in trace.ops if op.reads is not None and trace.variables[op.reads].computed]
        return bool(readers) and any(op.type == SNAPSHOT for op in trace.ops)

    @property
    def is_refused_by_xla(self) -> bool:
        """Whether the step was traced completely, but XLA cannot compile it or a part of it."""
        told = isinstance(self.error, tf.errors.OpError) and any(word in str(self.error) for word in _XLA)
        return told and self._is_complete

    @property
    def failed_at_gradient(self) -> bool:
        """Whether an op of a gradient raised at run time."""
        asked = self._traces[-1].variable_gradients if self._traces else ()
        return isinstance(self.error, tf.errors.OpError) and any(each.outcome == "error" for each in asked)

    @property
    def explained_with_failure(self) -> Explained:
        """The structure, and the error that running it raised."""
        found = self.explained
        return found if self.error is None else replace(found, trace=with_failure(found.trace, self.error))

    @property
    def explained(self) -> Explained:
        """Raises the step's own error if there is nothing to report without it.

        A step that raises because of its gradients (none for any variable, none registered) still has a structure.
        """
        if self.error is not None:
            if not self._traces:
                raise self.error
            trace = with_raised(self._with_rebound(self._checks.filled(self._traces[-1], {})), self.error)
            return Explained(self._session, trace, None, raised=f"{type(self.error).__name__}: {self.error}")
        record = record_of(self._values, index_of(self._values))
        trace = next(each for each in self._traces if each.index == record.trace)
        trace = self._with_rebound(self._checks.filled(trace, self._values))
        return Explained(self._session, trace, record, self._eager, training=self._training)

    @property
    def has_traces(self) -> bool:
        """Whether its structure is known."""
        return bool(self._traces)

    @property
    def raised_inside(self) -> bool:
        """Whether it raised while it ran or was traced, after a gradient was requested."""
        return bool(self._traces) and not self._is_complete

    def explained_instead_of(self, error: Exception) -> Explained:
        """The same result, with a note on why the step was not compiled."""
        return _noted(
            self.explained,
            f"TensorFlow cannot compile this step ({type(error).__name__}: {sentence_of(error)}), so it was run "
            "eagerly; `fit` needs `run_eagerly=True` for it.",
        )

    def explained_without(self, kept: Sequence[str]) -> Explained:
        """The same result, with a note on what a compiled step does differently."""
        said = " and ".join(f"`{name}(...)`" for name in dict.fromkeys(kept))
        return _noted(
            self.explained,
            f"The step was run eagerly, like a plain function. Inside `tf.function`, {said} of a tensor stays "
            "in TensorFlow.",
        )

    def _on_trace(self, trace: Trace, error: BaseException | None) -> None:
        self._traces.append(trace)
        self._is_complete = error is None

    def _with_rebound(self, trace: Trace) -> Trace:
        """The trace, with the variables that the step itself replaced by a tensor."""
        known = (replace(each, rebound=self._rebound.get(each.name, each.rebound)) for each in trace.variables)
        return replace(trace, variables=tuple(known))


def _noted(explained: Explained, note: str) -> Explained:
    return replace(explained, trace=replace(explained.trace, notes=(*explained.trace.notes, note)))


def _owned(variable: Any, written: str | None, place: int, frame: Frame | None) -> Owned:
    raw = raw_variable(variable)
    if isinstance(raw, tf.Variable):
        name = getattr(variable, "path", None) or variable.name.removesuffix(":0")
        return Owned(raw, name, bool(variable.trainable), tracked=True)
    if not isinstance(raw, (tf.__internal__.EagerTensor, np.ndarray)):
        symbolic = ", which belongs to a graph: pass the loss of that graph to `explain`" * isinstance(raw, tf.Tensor)
        raise SetupError(
            "variables: expected variables and tensors, such as `model.trainable_variables`, got a "
            f"{type(variable).__name__}{symbolic}"
        )
    name = written or name_of(variable) or f"variables[{place}]"
    rebound = name if frame is not None and was_variable(frame, name) else ""
    return Owned(GivenTensor(tf.convert_to_tensor(raw)), name, trainable=True, tracked=True, rebound=rebound)


def _build(model: Any, rows: Any) -> None:
    """Creates the variables that a first step would create, so that their initial values are known and can be
    restored.
    """
    if _unbuilt(model):
        # Errors here leave something unbuilt, which is checked afterwards.
        with contextlib.suppress(Exception):
            keras.src.backend.compute_output_spec(model, rows[0], training=False)
    if left := _unbuilt(model):
        # An optimizer that is built now would not know the variables that these create later.
        raise SetupError(
            f"the model {model.name!r} is not built: its layers {', '.join(left[:5])} have no weights yet. "
            "Run one batch through it first, for example `model.fit(x[:1], y[:1])`"
        )
    with contextlib.suppress(Exception), model.distribute_strategy.scope():
        model._symbolic_build(data_batch=rows)


def _unbuilt(model: Any) -> list[str]:
    return [str(layer.name) for layer in model._flatten_layers() if not layer.built]


def _first_rows(batch: Any, size: int | None) -> Any:
    return tf.nest.map_structure(lambda rows: None if rows is None else tf.convert_to_tensor(rows[:size]), batch)


def _state_of(model: Any) -> list[Any]:
    """Every variable that a training step of the model may change."""
    optimizers = [value for value in vars(model).values() if isinstance(value, keras.optimizers.Optimizer)]
    owners = [model, *optimizers, *model.metrics]
    generator = keras.src.backend.common.global_state.get_global_attribute("global_seed_generator")
    variables = [variable for owner in owners for variable in owner.variables]
    return [*variables, *([generator.state] if generator is not None else [])]
