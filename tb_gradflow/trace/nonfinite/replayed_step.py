"""Runs a caught step again, on copies: nothing of the training takes part in it, and nothing that the step did happens
again."""

from __future__ import annotations

from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.experiments.loss_alone import LastStep
from tb_gradflow.trace.nonfinite.guard import Caught
from tb_gradflow.trace.nonfinite.spiked_step import spike_of
from tb_gradflow.trace.step.copied_step import CopiedStep
from tb_gradflow.trace.step.measurements import Measured
from tb_gradflow.trace.step.mended import mended_step
from tb_gradflow.trace.step.named_inputs import NameInputs
from tb_gradflow.trace.step.observation import Observation
from tb_gradflow.trace.step.settings import Settings


class Replays:
    """Those of the steps of one function.

    Args:
        observation: What was observed of it when it was traced.
        inputs: Names the arguments of a step.
    """

    def __init__(self, observation: Observation, inputs: NameInputs) -> None:
        self._observation = observation
        self._inputs = inputs
        # Kept: what one of them measures with is in the graphs that the next one is made from.
        self._forms: dict[tuple[int, Settings], CopiedStep] = {}

    def of(self, caught: Caught, settings: Settings, index: int) -> tuple[Trace, Measured]:
        """The structure of a step, and what it measures in a form that changes nothing.

        Args:
            caught: The step.
            settings: What to record; with `values`, its forward pass too.
            index: The number of this trace, if it is the first one.

        Raises:
            NotRepeatable: what it did besides computing cannot be given to a second run.
        """
        arguments, unit = caught.arguments, caught.unit
        if unit.effects.unknown:
            raise NotRepeatable(f"it contains {', '.join(unit.effects.unknown)} in a loop, or compiled by XLA")
        key = (id(unit), settings)
        if key not in self._forms:
            self._forms[key] = CopiedStep(unit.function, self._observation, settings, self._inputs, index)
        form = self._forms[key]
        args = [
            unit.resource(number) if number in unit.resources else arguments[number]
            for number in range(len(unit.function.graph.inputs))
        ]
        values = {number: arguments[number] for number in unit.variables}
        given = unit.effects.given(caught.effects)
        measured = form.ran(args, values, after=[given])[1]
        last = LastStep(unit.function, args, values, unit.effects, given)
        if caught.excess is not None:
            return form.trace, measured | {"spike": spike_of(caught, form.measurements, last)}
        return form.trace, measured | mended_step(form.measurements, measured, lambda: last)
