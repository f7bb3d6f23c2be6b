"""Catches the first step whose gradient is not finite, so that this very step can be recorded.

By the time of the next recorded step all weights are NaN, and the op where it began is one of thousands. So between
recorded steps a guarded version of the step runs: the user's own, with a look at the gradients that it takes, and a
branch that is run once, where one of them is not finite. That one copies the state before the step, and the step's
batch. The recorder then runs the step again from there, instrumented, and puts everything back.

The branch is an `If` that TensorFlow does not lower: one op that does nothing until it is needed, where a lowered one
has a switch for each tensor that goes in. It is ordered by TensorFlow itself: after what the step has read of its
variables, and before it updates them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import record
from tensorflow.python.ops import cond_v2

from tb_gradflow.trace.guard import Guard, may_run_twice
from tb_gradflow.trace.patches import watching
from tb_gradflow.trace.slot import Slot
from tb_gradflow.trace.undo import undone

_NONE = -1


class Sentinel:
    """Guards the steps of one training.

    Attributes:
        state: All variables that a step may change.
        held: Those that a step may change before it takes its gradients: moving averages, seeds, metrics.
        fault: An exception that the sentinel itself is to blame for; null while there is none.
    """

    def __init__(self, state: Sequence[Any], held: Sequence[Any]) -> None:
        self.fault: Exception | None = None
        self.state = state
        self.held = held
        self._copies = [Slot(variable.dtype, variable.shape) for variable in state]
        self._batches: list[tuple[Any, list[Slot], Any]] = []
        self._caught = Slot(tf.int32, [])
        self._caught.write(tf.constant(_NONE))

    def guarded(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The same step, to be compiled as the user's own is."""

        def run(*args: Any, **kwargs: Any) -> Any:
            with watching(_Holding(self, (args, kwargs))):
                return step(*args, **kwargs)

        return run

    @property
    def caught(self) -> bool:
        """Whether a step had a gradient that is not finite."""
        return int(self._caught.read()) != _NONE

    def may_repeat(self) -> bool:
        """Whether nobody would notice if the step that was caught ran a second time."""
        return may_run_twice(self._batches[int(self._caught.read())][2])

    @contextlib.contextmanager
    def before_it(self) -> Iterator[tuple[Any, Any]]:
        """While the context is open all variables are as they were before that step; its arguments."""
        structure, slots, _ = self._batches[int(self._caught.read())]
        with undone(lambda: list(self.state), ()):
            for variable, copy in zip(self.state, self._copies, strict=True):
                variable.assign(copy.read())
            flat = [slot.read() if isinstance(slot, Slot) else slot for slot in slots]
            args, kwargs = tf.nest.pack_sequence_as(structure, flat, expand_composites=True)
            yield args, kwargs

    def failed(self, fault: Exception) -> None:
        """The sentinel itself has failed while the step was traced."""
        self.fault = self.fault or fault

    def keep(self, wrong: Any, arguments: Any, earlier: dict[int, Any]) -> None:
        """In the step's graph: keeps its arguments and the state where `wrong` is true, if nothing is kept yet.

        `earlier` has the values, by variable, of those that the step has changed by now.
        """
        flat = tf.nest.flatten(arguments, expand_composites=True)
        slots = [Slot(each.dtype, each.shape) if isinstance(each, tf.Tensor) else each for each in flat]
        number = len(self._batches)
        self._batches.append((arguments, slots, tf.compat.v1.get_default_graph()))

        outer = list(_graphs_around())

        def kept() -> Any:
            for variable, copy in zip(self.state, self._copies, strict=True):
                value = earlier.get(id(variable))
                copy.write(variable.read_value() if value is None or value.graph not in outer else value)
            for slot, tensor in zip(slots, flat, strict=True):
                if isinstance(slot, Slot):
                    slot.write(tensor)
            self._caught.write(tf.constant(number))
            return tf.constant(True)

        first = wrong & tf.equal(self._caught.read(), _NONE)
        _not_lowered(cond_v2.cond_v2(first, kept, lambda: tf.constant(False)))


class _Holding(Guard):
    """Holds what the step's variables were before it changed them."""

    def __init__(self, sentinel: Sentinel, arguments: Any) -> None:
        super().__init__(lambda wrong: sentinel.keep(wrong, arguments, self._earlier), sentinel.failed)
        self._state = sentinel.state
        self._earlier: dict[int, Any] = {}
        with self._own_work():
            self._hold(sentinel.held)

    def applying(self, apply: Callable[[], Any]) -> Any:
        """Runs an optimizer's update. A gradient that is taken after it is of another state than the step's first."""
        with self._own_work(), record.stop_recording():
            self._hold(self._state)
        return apply()

    def _hold(self, variables: Sequence[Any]) -> None:
        for variable in variables:
            if id(variable) not in self._earlier:
                self._earlier[id(variable)] = variable.read_value()


def _graphs_around() -> Iterator[Any]:
    """The graphs whose tensors can be used here."""
    graph = tf.compat.v1.get_default_graph()
    while graph is not None:
        yield graph
        graph = getattr(graph, "outer_graph", None)


def _not_lowered(branched: Any) -> None:
    made = branched.op
    while made.type == "Identity":
        made = made.inputs[0].op
    made._set_attr("_lower_using_switch_merge", attr_value_pb2.AttrValue(b=False))
