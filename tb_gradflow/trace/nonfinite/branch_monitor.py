"""Catches the first step whose gradient is not finite, so that this very step can be recorded.

By the next recorded step all weights are NaN, and the op where it began is one of thousands. So between recorded steps
a monitored version of the step runs: the user's own, with a check of the gradients that it takes, and a branch that
runs once, when one of them is not finite. The branch keeps the state before the step, and the step's batch. The
recorder then runs the step again from there, instrumented, and restores everything.

The branch is an `If` that TensorFlow does not lower: one op that does nothing until it is needed, where a lowered one
has a switch for each tensor that goes in. Each input costs a microsecond, so the variables are not inputs: the branch
calls Python, which reads them. An op that does nothing, after the branch, ensures that the step has not updated them
before: it takes all variables, so TensorFlow orders it before their updates. (A function that does nothing would be
inlined as an op for each variable; with this op a step of three milliseconds is two percent faster.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.ops import cond_v2

from tb_gradflow.trace.fidelity.rollback import undone
from tb_gradflow.trace.nonfinite.gradient_observer import GradientObserver, may_run_twice, observed
from tb_gradflow.trace.nonfinite.monitor import CaughtStep, NonfiniteMonitor, caught_step
from tb_gradflow.trace.protection.beside import beside
from tb_gradflow.trace.protection.functions import held_weakly, in_step
from tb_gradflow.trace.protection.training import Execution
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep
from tb_gradflow.trace.step.recent_batches import OWN_OP


class CatchingBranch:
    """The branch in the steps of one training.

    Attributes:
        state: All variables that a step may change.
        held: Those that a step may change before it takes its gradients: moving averages, seeds, metrics.
        fault: An exception of the branch itself; `None` while there is none.
    """

    def __init__(self, state: Sequence[Any], held: Sequence[Any]) -> None:
        self.fault: Exception | None = None
        self.state = state
        self.held = held
        self._kept: _Kept | None = None
        self._noting: list[Callable[..., Any]] = []

    def added_to(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step with this branch in it, to be compiled like the user's own."""

        def run(*args: Any, **kwargs: Any) -> Any:
            earlier = _Earlier()
            observer = GradientObserver(
                lambda wrong: self.keep(wrong, (args, kwargs), earlier.values),
                self.failed,
                # A gradient that is taken after an update is of another state than the step's first.
                before_update=lambda: earlier.hold(self.state),
            )
            return beside(lambda: step(*args, **kwargs), lambda: self._observed(observer, earlier), self.failed)

        return run

    def _observed(self, observer: GradientObserver, earlier: _Earlier) -> contextlib.AbstractContextManager[None]:
        earlier.hold(self.held)
        return observed([observer], self.failed)

    @property
    def has_caught(self) -> bool:
        """Whether a step had a gradient that is not finite."""
        return self._kept is not None

    def may_repeat(self) -> bool:
        """Whether a second run of the caught step would have no visible side effect."""
        return self._kept is not None and may_run_twice(self._kept.graph)

    @contextlib.contextmanager
    def before_it(self) -> Iterator[tuple[Any, Any]]:
        """While the context is open, all variables are as they were before that step; yields its arguments."""
        assert self._kept is not None
        with undone(lambda: list(self.state), ()):
            for variable, value in zip(self.state, self._kept.state, strict=True):
                variable.assign(value)
            yield self._kept.arguments

    def failed(self, fault: Exception) -> None:
        """The branch itself has failed, while the step was traced or while it kept the state."""
        self.fault = self.fault or fault

    def keep(self, wrong: Any, arguments: Any, earlier: dict[int, Any]) -> None:
        """In the step's graph: keeps its arguments and the state where `wrong` is true, if nothing is kept yet.

        `earlier` maps the variables that the step has changed so far to their previous values.
        """
        graph = tf.compat.v1.get_default_graph()
        around = list(_graphs_around(graph))
        flat = tf.nest.flatten(arguments, expand_composites=True)
        given = {at: each for at, each in enumerate(flat) if isinstance(each, tf.Tensor)}
        changed = {number: value for number, value in earlier.items() if value.graph in around}

        def note(*values: Any) -> None:
            if self._kept is None:
                tensors = dict(zip(given, values[: len(given)], strict=True))
                before = dict(zip(changed, values[len(given) :], strict=True))
                self._kept = _Kept(self.state, graph, arguments, tensors, before)

        noting = in_step(note, True, self.failed)
        self._noting.append(noting)

        def kept() -> Any:
            return tf.numpy_function(
                held_weakly(noting, True), [*given.values(), *changed.values()], tf.bool, name=OWN_OP
            )

        branch = _not_lowered(cond_v2.cond_v2(wrong, kept, lambda: tf.constant(False)))
        with tf.control_dependencies([branch]):
            self._before_updates()

    def _before_updates(self) -> None:
        """In the step's graph: orders everything before this before the updates of variables after it."""
        graph = tf.compat.v1.get_default_graph()
        # The positions of random ops in their sequences are read at the beginning of the step, by ops that are added at
        # its end.
        updated = [variable for variable in self.state]
        if updated:
            tf.raw_ops.IdentityN(input=[graph.capture(variable.handle) for variable in updated])


class _Kept:
    """The data for running a step again.

    Attributes:
        state: The values of the variables before it.
        graph: The graph of its trace.
        arguments: The arguments of the step.
    """

    def __init__(
        self, state: Sequence[Any], graph: Any, arguments: Any, tensors: dict[int, Any], before: dict[int, Any]
    ) -> None:
        self.state = [before[id(each)] if id(each) in before else each.read_value() for each in state]
        self.graph = graph
        flat = tf.nest.flatten(arguments, expand_composites=True)
        values = [tf.constant(tensors[at], each.dtype) if at in tensors else each for at, each in enumerate(flat)]
        self.arguments = tf.nest.pack_sequence_as(arguments, values, expand_composites=True)


class _Earlier:
    """What a step's variables were before it changed them.

    Attributes:
        values: By id of the variable.
    """

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}

    def hold(self, variables: Sequence[Any]) -> None:
        """In the step's graph: they have not been changed yet, but for those that are held."""
        for variable in variables:
            if id(variable) not in self.values:
                self.values[id(variable)] = variable.read_value()


def _graphs_around(graph: Any) -> Iterator[Any]:
    """The graphs whose tensors can be used in this one, with itself."""
    while graph is not None:
        yield graph
        graph = getattr(graph, "outer_graph", None)


def _not_lowered(branched: Any) -> Any:
    made = branched.op
    while made.type == "Identity":
        made = made.inputs[0].op
    made._set_attr("_lower_using_switch_merge", attr_value_pb2.AttrValue(b=False))
    return made


# Elements. A variable that is read at the beginning of each step is copied when the step changes it.
_CHEAP = 1024


class BranchMonitor(NonfiniteMonitor):
    """Runs a step with a branch in it that keeps the state when a gradient is not finite.

    Args:
        step: The user's own step, ready to be traced.
        instrumented: The recorder's version of it, which has run before.
        compiled: Compiles a step as the user's own is compiled, to be run in an execution.
        iterations: Returns how many steps have run; `None` if that is not known.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        instrumented: InstrumentedStep,
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]],
        iterations: Callable[[], int | None],
    ) -> None:
        super().__init__()
        self._instrumented = instrumented
        state = instrumented.touched
        self._branch = CatchingBranch(state, _changed_early(state, instrumented.untrained))
        self._iterations = iterations
        self._function = compiled(self._branch.added_to(step))

    @property
    def fault(self) -> Exception | None:
        """An exception of the monitor itself; `None` while there is none."""
        return self._branch.fault

    def _run(self, execution: Execution, /, *args: Any, **kwargs: Any) -> Any:
        return self._function(execution, *args, **kwargs)

    def settled(self) -> bool:
        return self._branch.has_caught

    def caught_by_now(self) -> bool:
        return self._branch.has_caught

    def measure(self) -> CaughtStep | None:
        if not self._branch.may_repeat():
            return None
        # Without the forward measurements, if these fail or if the step then behaves differently.
        with contextlib.suppress(Exception), self._instrumented.measuring_values():
            if (caught := self._repeated()) is not None:
                return caught
        return self._repeated()

    def _repeated(self) -> CaughtStep | None:
        now = self._iterations()
        repeated = tf.function(tf.autograph.experimental.do_not_convert(lambda *a, **k: self._instrumented(*a, **k)))
        with self._branch.before_it() as (args, kwargs):
            before = self._iterations()
            _, measured = repeated(*args, **kwargs)
        return caught_step(measured, 1 if now is None or before is None else now - before)


def _changed_early(state: Sequence[Any], untrained: Sequence[Any]) -> list[Any]:
    """Variables that a step may change before it takes its gradients: moving averages, seeds, counters.

    An optimizer has one or two for each weight, of its shape, and changes them later.
    """
    listed = {id(variable) for variable in untrained}
    weights = {(variable.dtype, tuple(variable.shape)) for variable in state if variable.trainable}
    return [
        variable
        for variable in state
        if id(variable) in listed
        or (
            not variable.trainable
            and (variable.shape.rank == 0 or (variable.dtype, tuple(variable.shape)) not in weights)
            and (variable.shape.num_elements() or 0) <= _CHEAP
        )
    ]
