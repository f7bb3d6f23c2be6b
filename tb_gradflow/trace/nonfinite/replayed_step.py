"""Runs a caught step again, on copies: nothing of the training takes part in it, and nothing that the step did happens
again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.engine.draws import Draws
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.engine.siblings import Added, Edit, Sibling
from tb_gradflow.trace.nonfinite.guard import Caught
from tb_gradflow.trace.step.forward_values import has_nonfinite
from tb_gradflow.trace.step.measurements import Measured
from tb_gradflow.trace.step.named_inputs import NameInputs
from tb_gradflow.trace.step.observation import Observation
from tb_gradflow.trace.step.replicas import measured_in
from tb_gradflow.trace.step.settings import Settings
from tb_gradflow.trace.step.state import kept

_NUMBERS = itertools.count()


class ReplayedStep:
    """A form of a step that measures what it computes, and changes nothing.

    Args:
        caught: The step.
        observation: What was observed of it when it was traced.
        settings: What to record; with `values`, its forward pass too.
        inputs: Names its arguments.
        index: The number of this trace.

    Attributes:
        trace: Its structure.

    Raises:
        NotRepeatable: what it did besides computing cannot be given to a second run.
    """

    def __init__(
        self, caught: Caught, observation: Observation, settings: Settings, inputs: NameInputs, index: int
    ) -> None:
        unit = caught.unit
        if unit.effects.unknown:
            raise NotRepeatable(f"it contains {', '.join(unit.effects.unknown)} in a loop, or compiled by XLA")
        self._caught = caught
        self._measurements = measured_in(observation, unit.function, settings, inputs, index, trains=False)
        self.trace: Trace = self._measurements.trace
        edits: list[Edit] = [
            Draws(unit.function),
            Added(self._measurements.additions),
            unit.effects.given(caught.effects),
        ]
        self._sibling = Sibling(unit.function, edits, optimized=False)

    def measured(self) -> Measured:
        """Runs it."""
        with tf.init_scope():
            copies = {id(handle): copy for handle, copy in self._copies()}
            unit = self._caught.unit

            def read(variable: Any) -> Any:
                copy = copies.get(id(variable.handle))
                return kept(variable) if copy is None else copy.value()

            try:
                self._measurements.begin(read)
                self._sibling([self._argument(number, copies) for number in range(len(unit.function.graph.inputs))])
                return self._measurements.take(read)
            finally:
                for each in copies.values():
                    each.free()

    def _copies(self) -> Iterator[tuple[Any, _Copy]]:
        """The variables that it is given, each with a copy that has its value before the step."""
        for number in self._caught.unit.variables:
            handle = self._caught.unit.resource(number)
            yield handle, _Copy(handle, self._caught.arguments[number])

    def _argument(self, number: int, copies: Mapping[int, _Copy]) -> Any:
        unit = self._caught.unit
        if number not in unit.resources:
            return self._caught.arguments[number]
        handle = unit.resource(number)
        return copies[id(handle)].handle if id(handle) in copies else handle


class _Copy:
    """A variable that nothing else uses.

    Attributes:
        handle: Its handle.
    """

    def __init__(self, of: Any, value: Any) -> None:
        self._dtype = value.dtype
        with tf.device(of.device):
            name = f"tb_gradflow_copy_{next(_NUMBERS)}"
            self.handle = tf.raw_ops.VarHandleOp(dtype=value.dtype, shape=tf.TensorShape(None), shared_name=name)
            tf.raw_ops.AssignVariableOp(resource=self.handle, value=value)

    def value(self) -> Any:
        return tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self._dtype)

    def free(self) -> None:
        tf.raw_ops.DestroyResourceOp(resource=self.handle, ignore_lookup_error=True)


def is_broken(trace: Trace, measured: Mapping[str, Any]) -> bool:
    """Whether the loss, a gradient or the batch of a step with these measurements was not finite."""
    losses = [loss for loss, target in zip(measured["losses"], trace.targets, strict=False) if target.measured]
    if not np.all(np.isfinite(losses)):
        return True
    # A loss scale that is too large often produces infinities, and the optimizer skips those steps.
    is_scaled = any(target.scaled for target in trace.targets)
    movements = {each.row for each in trace.movements}
    rows = [row for row in range(len(measured["gradients"])) if row not in movements]
    return not is_scaled and has_nonfinite(measured["gradients"][rows])
