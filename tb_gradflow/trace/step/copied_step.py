"""A form of a step that measures what it computes, and changes nothing: it runs on copies of the variables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import handle_data_util

from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.draws import Draws
from tb_gradflow.trace.engine.siblings import Added, Edit, Sibling
from tb_gradflow.trace.step.measurements import Measured
from tb_gradflow.trace.step.named_inputs import NameInputs
from tb_gradflow.trace.step.observation import Observation
from tb_gradflow.trace.step.replicas import measured_in
from tb_gradflow.trace.step.settings import Settings
from tb_gradflow.trace.step.state import kept


def variables_given(function: Any) -> dict[int, Any]:
    """Which arguments of an `AtomicFunction` are variables, each with the type of its values."""
    return {
        number: tf.as_dtype(handle.shape_and_type[0].dtype)
        for number, each in enumerate(function.graph.inputs)
        if each.dtype == tf.resource
        and (handle := handle_data_util.get_resource_handle_data(each)).is_set
        and len(handle.shape_and_type) == 1
    }


class CopiedStep:
    """See above.

    Args:
        function: The `AtomicFunction` that takes the gradients.
        observation: What was observed of it when it was traced.
        settings: What to record; with `values`, its forward pass too.
        inputs: Names its arguments.
        index: The number of this trace.
        optimized: See `Sibling`.

    Attributes:
        trace: Its structure.
    """

    def __init__(
        self,
        function: Any,
        observation: Observation,
        settings: Settings,
        inputs: NameInputs,
        index: int,
        *,
        optimized: bool = False,
    ) -> None:
        self._function = function
        self._optimized = optimized
        self._measurements = measured_in(
            observation, function, settings, inputs, index, trains=False, optimized=optimized
        )
        self.trace: Trace = self._measurements.trace

    def ran(
        self, args: Sequence[Any], values: Mapping[int, Any], before: Sequence[Edit] = (), after: Sequence[Edit] = ()
    ) -> tuple[Any, Measured]:
        """Runs it: what the step returns, and what was measured.

        Args:
            args: Its arguments, with the handles of the variables themselves.
            values: The value that the copy of each variable has, by the number of its argument.
            before: Edits of it.
            after: Those that concern the additional ops too.
        """
        own = self._measurements.additions
        edits: list[Edit] = [Draws(self._function), *before, Added(own), *after]
        in_order = [each.of for each in own] if self._optimized else []
        sibling = Sibling(self._function, edits, optimized=self._optimized, in_order=in_order)
        with tf.init_scope(), self._copied(args, values) as copies:

            def read(variable: Any) -> Any:
                copy = copies.get(id(getattr(variable, "handle", None)))
                return kept(variable) if copy is None else copy.written()

            self._measurements.begin(read)
            results = sibling([copies[id(each)].opened() if id(each) in copies else each for each in args])
            return results, self._measurements.take(read)

    @contextlib.contextmanager
    def _copied(self, args: Sequence[Any], values: Mapping[int, Any]) -> Iterator[dict[int, Cell]]:
        """The copies of the variables, perhaps without a value, by the ids of their handles."""
        copies: dict[int, Cell] = {}
        try:
            for number, dtype in variables_given(self._function).items():
                if id(args[number]) not in copies:
                    copies[id(args[number])] = copy = Cell(dtype, args[number].device)
                    if values.get(number) is not None:
                        copy.write(values[number])
            yield copies
        finally:
            for each in copies.values():
                each.take()
