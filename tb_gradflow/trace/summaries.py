"""Gradients that the user's own loop computed, recorded through its `tf.summary` writer:
`tb_gradflow.summary.gradients`.

The tape is not observed here: the gradients are those that are passed. Inside a `tf.function` the path from the
variables to the loss is read from the loss's graph; an eager loss has no graph, and only variables are recorded.

Records go through the user's writer, into its own file, because a writer does not expose its directory. Since the
writer remains the only one there, TensorBoard's Python loader, which stops reading a file once there is a later one in
the directory, reads all of it.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.ops import summary_ops_v2
from tensorflow.python.util import tf_stack

from tb_gradflow.errors import SetupError
from tb_gradflow.record.schema import EAGER, VARIABLE_STATISTICS, Trace
from tb_gradflow.trace.engine.reached import behind
from tb_gradflow.trace.graph.build_trace import Looked, trace_of
from tb_gradflow.trace.graph.flat_ops import FlatOp, Input, Known, Ref
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.gradient_call import Answer, Call
from tb_gradflow.trace.graph.variables import Variables, distinct, is_variable, local
from tb_gradflow.trace.log.summary_writer import WriterRecorder, before_flush
from tb_gradflow.trace.numerics.fusion import elements_of
from tb_gradflow.trace.numerics.statistics import GRADIENT_COLUMNS, gradient_statistics, variable_statistics
from tb_gradflow.trace.numerics.statistics_table import StatisticsTable
from tb_gradflow.trace.protection.attention import left_to_author
from tb_gradflow.trace.protection.foreign import suppressed
from tb_gradflow.trace.protection.functions import in_step
from tb_gradflow.trace.protection.training import Protection, protected_function, protected_method
from tb_gradflow.trace.protection.warning import warn
from tb_gradflow.trace.source.frames import frames_of

_UNSEEN = (
    "A loss was eager, and an eager tensor does not know how it was computed: the variables are recorded, but "
    "not the path between them and the loss. To record the path, put the step inside `tf.function`, or use "
    "`tb_gradflow.watch`."
)


def _report_fault(error: Exception) -> None:
    warn(f"tb_gradflow stopped recording; training continues. Please report this: {type(error).__name__}: {error}")


# Inside a `tf.function` AutoGraph would convert everything that is called here, and the log would keep the converted
# code as the user's. TensorFlow ships no type information.
@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
@left_to_author()
@protected_function(SetupError, _report_fault)
def record_gradients(loss: Any, variables: Sequence[Any], gradients: Sequence[Any], name: str) -> None:
    """See `tb_gradflow.summary.gradients`."""
    _check_kinds(loss, variables, gradients)
    if len(variables) != len(gradients):
        found = f"{len(gradients)} for {len(variables)} variables"
        raise SetupError(f"gradients must contain one gradient for each variable, got {found}")
    writer = summary_ops_v2._summary_state.writer
    if writer is None or isinstance(writer, summary_ops_v2._NoopSummaryWriter):
        return
    step = tf.summary.experimental.get_step()
    if step is None:
        raise SetupError("no step is set: use `writer.as_default(step=…)` or `tf.summary.experimental.set_step(…)`")
    if id(writer) not in _LOGS:
        _LOGS[id(writer)] = SummaryLog(writer)
    _LOGS[id(writer)].record(loss, variables, gradients, name, step)


def _check_kinds(loss: Any, variables: Any, gradients: Any) -> None:
    """Raises SetupError unless the arguments are what their names say: three arguments are easily swapped."""
    order = "the arguments are (loss, variables, gradients)"
    if not isinstance(loss, tf.Tensor) or is_variable(loss):
        raise SetupError(f"the loss must be a tensor, got {_kind(loss)}: {order}")
    for given, name in ((variables, "variables"), (gradients, "gradients")):
        if not isinstance(given, Sequence):
            raise SetupError(f"{name} must be a list, got {_kind(given)}: {order}")
    for each in variables:
        if not is_variable(each):
            raise SetupError(f"variables must contain only variables, got {_kind(each)}: {order}")
    for each in gradients:
        if is_variable(each):
            raise SetupError(f"gradients must contain the gradients that the tape returned, got {_kind(each)}: {order}")


def _kind(value: Any) -> str:
    """A readable name."""
    if is_variable(value):
        return "a variable"
    return "a tensor" if isinstance(value, tf.Tensor) else f"a {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class _Measured:
    """The measurements of one call in one step: the loss, `[gradients, 6]` for the gradients that exist, `[variables,
    4]`.
    """

    loss: float
    rows: Any
    norms: Any


class _Before:
    """A graph without the ops created after a given one: those of the gradients, and their consumers."""

    def __init__(self, graph: Any, last: Any) -> None:
        self._graph = graph
        self._last = last

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)

    def get_operations(self) -> Any:
        operations = self._graph.get_operations()
        return operations[: operations.index(self._last) + 1]


class SummaryLog:
    """The records of one writer. The calls of one step form one record, which is complete when the next step begins.

    Attributes:
        protection: What protects the training from faults in here.
        lock: Held while a call is recorded: TensorFlow runs the calls of a compiled step in its own threads.
    """

    def __init__(self, writer: Any) -> None:
        self._variables = Variables()
        self._calls: list[tuple[str, Call]] = []
        self._eager: dict[Any, int] = {}
        self._traces: dict[tuple[int, ...], tuple[Trace, int]] = {}
        self._pending: dict[int, _Measured] = {}
        self._step = self._last = -1
        self._told = False
        self.protection = Protection(self._ends)
        self.lock = threading.RLock()
        self._recorder = WriterRecorder(writer)
        before_flush(writer, self.flush)
        weakref.finalize(self, self._recorder.flush)

    @protected_method
    def record(self, loss: Any, variables: Sequence[Any], gradients: Sequence[Any], name: str, step: Any) -> None:
        """One call of `summary.gradients`, eager or in a graph that is being made."""
        with self.lock:
            recording = tf.summary.should_record_summaries()
            if not isinstance(loss, tf.__internal__.EagerTensor):
                self._record_in_graph(loss, variables, gradients, name, step, recording)
            elif recording:
                call = self._eager_call(variables, gradients, name)
                numbers = (loss, *_measured(variables, gradients))
                self._arrived(call, int(step), *(number.numpy() for number in numbers))

    @protected_method
    def flush(self) -> None:
        """Everything recorded so far is with the writer when this returns."""
        with self.lock:
            self._write()
            self._recorder.flush()

    def _record_in_graph(self, loss: Any, variables: Any, gradients: Any, name: str, step: Any, recording: Any) -> None:
        graph = _Before(loss.graph, loss.op)
        flattener = Flattener(graph, self._variables.of_handle)
        for variable in variables:
            self._variables.index_of(variable)
        flattener.extend()
        call = self._add(flattener, flattener.ref(loss), variables, gradients, name)

        def hand_over() -> Any:
            numbers = [tf.cast(step, tf.int64), tf.cast(loss, tf.float32), *_measured(variables, gradients)]
            heard = in_step(functools.partial(self._heard, call), np.bool_(True), self.protection.ends)
            return tf.numpy_function(heard, numbers, tf.bool)

        tf.__internal__.smart_cond.smart_cond(recording, hand_over, lambda: tf.constant(False))

    def _eager_call(self, variables: Any, gradients: Any, name: str) -> int:
        key = (name, tuple(id(each) for each in variables), tuple(each is None for each in gradients))
        if key not in self._eager:
            with FuncGraph("eager").as_default():
                flattener = _unseen(name, self._variables, variables, gradients)
            self._eager[key] = self._add(flattener, Ref(len(variables), 0), variables, gradients, name)
        return self._eager[key]

    def _add(self, flattener: Flattener, ref: Ref | None, variables: Any, gradients: Any, name: str) -> int:
        """Registers a place where gradients are recorded; returns its number."""
        frames = frames_of(tf_stack.extract_stack())
        call = Call(flattener, () if ref is None else (ref,), None, frames, "none", frozenset())
        call.sources = len(variables)
        symbolic = [each for each in gradients if each is not None and tf.is_symbolic_tensor(elements_of(each))]
        call.passed = True
        call.by_hand = bool(symbolic) and not any(map(_is_taken, symbolic))
        for variable, gradient in zip(variables, gradients, strict=True):
            index = self._variables.index_of(variable)
            call.variables[index] = Answer("none", None) if gradient is None else Answer("value", call.rows.add())
        self._calls.append((name, call))
        return len(self._calls) - 1

    def _ends(self, fault: Exception) -> None:
        """What was recorded before a fault can be read."""
        _report_fault(fault)
        with suppressed():  # it may be what failed
            self._recorder.flush()

    def _heard(self, call: int, step: Any, loss: Any, rows: Any, norms: Any) -> None:
        if not self.protection.is_over:
            with self.lock:
                self._arrived(call, int(step), loss, rows, norms)

    def _arrived(self, call: int, step: int, loss: Any, rows: Any, norms: Any) -> None:
        if step != self._step:
            self._write()
        self._step = step
        self._pending[call] = _Measured(float(np.sum(loss)), rows, norms)

    def _write(self) -> None:
        pending, self._pending = self._pending, {}
        if not pending:
            return
        if self._step <= self._last:
            self._tell_order()
            return
        self._last = self._step
        calls = tuple(sorted(pending))
        trace, index = self._trace(calls)
        norms = np.full((len(trace.variables), len(VARIABLE_STATISTICS)), np.nan, np.float32)
        for call in calls:
            norms[list(self._calls[call][1].variables)] = pending[call].norms
        measured = {
            "losses": [pending[call].loss for call in calls],
            "gradients": np.concatenate([pending[call].rows for call in calls]),
            "variables": norms,
        }
        self._recorder.add_step(self._step, index, measured)

    def _trace(self, calls: tuple[int, ...]) -> tuple[Trace, int]:
        """The trace of a step with these calls, and its index in the log."""
        if calls not in self._traces:
            trace = self._made(calls)
            self._traces[calls] = trace, self._recorder.add_trace(trace)
        return self._traces[calls]

    def _made(self, calls: tuple[int, ...]) -> Trace:
        listed, chosen = zip(*(self._calls[call] for call in calls), strict=True)
        table = StatisticsTable(call.rows for call in chosen)
        trace = trace_of(Looked(chosen, self._variables, table), 0)
        names = distinct(listed)
        asked = {index for call in chosen for index in call.variables}
        return replace(
            trace,
            targets=tuple(replace(target, name=name) for target, name in zip(trace.targets, names, strict=True)),
            variables=tuple(replace(each, tracked=number in asked) for number, each in enumerate(trace.variables)),
            notes=(*trace.notes, _UNSEEN) if any(op.type == EAGER for op in trace.ops) else trace.notes,
        )

    def _tell_order(self) -> None:
        if not self._told:
            self._told = True
            warn(
                f"tb_gradflow skipped step {self._step} because it came after step {self._last}: steps must "
                "increase. Give the writer a new step each time: `with writer.as_default(step=step)`."
            )


_LOGS: dict[int, SummaryLog] = {}
"""The log by the id of its writer, which the log keeps alive."""


def _in_fork() -> None:
    """In a forked process, which has none of the other threads: one of them may hold a lock."""
    for each in [*_LOGS.values()]:
        each.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_fork)


def _unseen(name: str, known: Variables, variables: Sequence[Any], gradients: Sequence[Any]) -> Flattener:
    """The structure of an eager loss, as far as the gradients show it: the loss depends on the variables that have
    one.
    """
    loss = tf.constant(0.0)  # a target for the edges
    flattener = Flattener(loss.graph, known.of_handle)
    inputs = []
    for slot, (variable, gradient) in enumerate(zip(variables, gradients, strict=True)):
        spec = (tf.TensorSpec(variable.shape, variable.dtype),)
        read = known.index_of(variable)
        flattener.ops.append(FlatOp(f"eager {name}/{slot}", "ReadVariableOp", loss.op, spec, False, reads=read))
        inputs.append(Input(Ref(slot, 0), slot, "unknown" if gradient is None else "yes"))
    whole = FlatOp(f"eager {name}", EAGER, loss.op, (loss,), False, inputs, known=Known(EAGER))
    flattener.ops.append(whole)
    return flattener


def _is_taken(gradient: Any) -> bool:
    """Whether a tape or `tf.gradients` contributed to a gradient: they create their ops in their own name scopes."""
    scopes = (scope for op in behind([elements_of(gradient).op]) for scope in op.name.split("/"))
    return any(scope == "gradient_tape" or scope.startswith("gradients") for scope in scopes)


def _measured(variables: Sequence[Any], gradients: Sequence[Any]) -> tuple[Any, Any]:
    rows = [gradient_statistics(each) for each in gradients if each is not None]
    norms = [variable_statistics(tf.convert_to_tensor(local(each)), None) for each in variables]
    return tf.stack(rows) if rows else tf.zeros([0, GRADIENT_COLUMNS]), tf.stack(norms)
