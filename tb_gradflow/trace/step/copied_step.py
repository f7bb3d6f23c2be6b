"""A form of a step that measures what it computes, and changes nothing: it runs on copies of the variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.engine.copies import copied
from tb_gradflow.trace.engine.draws import Draws
from tb_gradflow.trace.engine.siblings import Added, Edit, Sibling
from tb_gradflow.trace.step.measurements import Measured
from tb_gradflow.trace.step.named_inputs import NameInputs
from tb_gradflow.trace.step.observation import Observation
from tb_gradflow.trace.step.replicas import measured_in
from tb_gradflow.trace.step.settings import Settings
from tb_gradflow.trace.step.state import kept


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
        measurements: What is measured of it.
        after: What the variables were after it, by the numbers of the arguments; none unless that was requested.
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
        self.measurements = measured_in(
            observation, function, settings, inputs, index, trains=False, optimized=optimized
        )
        self.trace: Trace = self.measurements.trace
        self.after: dict[int, Any] = {}

    def ran(
        self,
        args: Sequence[Any],
        values: Mapping[int, Any],
        before: Sequence[Edit] = (),
        after: Sequence[Edit] = (),
        *,
        keeps_values: bool = False,
    ) -> tuple[Any, Measured]:
        """Runs it: what the step returns, and what was measured.

        Args:
            args: Its arguments, with the handles of the variables themselves.
            values: The value that the copy of each variable has, by the number of its argument.
            before: Edits of it.
            after: Those that concern the additional ops too.
            keeps_values: Whether the values of the variables after the step are kept.
        """
        own = self.measurements.additions
        edits: list[Edit] = [Draws(self._function), *before, Added(own), *after]
        in_order = [each.of for each in own] if self._optimized else []
        sibling = Sibling(self._function, edits, optimized=self._optimized, in_order=in_order)
        with tf.init_scope(), copied(self._function, args, values) as copies:

            def read(variable: Any) -> Any:
                copy = copies.get(id(getattr(variable, "handle", None)))
                return kept(variable) if copy is None else copy.written()

            self.measurements.begin(read)
            results = sibling([copies[id(each)].opened() if id(each) in copies else each for each in args])
            if keeps_values:
                known = [number for number, value in values.items() if value is not None]
                self.after = {number: copies[id(args[number])].written() for number in known}
            return results, self.measurements.take(read)
