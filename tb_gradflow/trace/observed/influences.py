"""Moves the variables of a training that get no gradient, after the first recorded steps in which they get none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tb_gradflow.trace.engine.calls import places
from tb_gradflow.trace.engine.copies import small_ones
from tb_gradflow.trace.experiments.influences import Pairs, Questions, influences
from tb_gradflow.trace.experiments.loss_alone import LastStep
from tb_gradflow.trace.nonfinite.guard import Unit
from tb_gradflow.trace.step.measurements import Measured, Measurements


class Influences:
    """Those of one function.

    Args:
        units: What takes gradients in it.
        measurements: What is measured of it.
        questions: The variables of the training that are moved.
    """

    def __init__(self, units: Sequence[Unit], measurements: Measurements, questions: Questions) -> None:
        self._units = units
        self._measurements = measurements
        self._questions = questions
        self._small = [small_ones(unit.function, _SMALL) for unit in units]
        self._before: list[dict[int, Any]] = []

    def begin(self) -> None:
        """Before a step that is recorded."""
        self._before = [] if self._questions.are_over else list(map(self._values_in, self._units, self._small))

    def of(self, measured: Measured) -> Measured:
        """What is known in addition after a step of which this was measured."""
        before, self._before = self._before, []
        new = self._questions.new(self._measurements.trace, measured["gradients"])
        if not new:
            return {}
        was = self._measurements.by_target(measured)
        found = [self._in(unit, new, was, values) for unit, values in zip(self._units, before, strict=True)]
        return {
            "influences": tuple(each for known in found for each in known["influences"]),
            "not_moved": next((reason for known in found if (reason := known["not_moved"])), ""),
        }

    def _values_in(self, unit: Unit, small: Collection[int]) -> dict[int, Any]:
        """The values of its variables, by the number of the argument. Of large ones only those that the measurements
        keep anyway: TensorFlow copies what is kept when it changes."""
        own = {id(getattr(each.variable, "handle", None)) for each in self._measurements.variables}
        try:
            kept = [each for each in unit.variables if each in small or id(unit.resource(each)) in own]
            return {number: unit.value(number) for number in kept}
        except Exception:  # computed in the step, or without a value before it
            return {}

    def _in(self, unit: Unit, pairs: Pairs, was: Mapping[int, float], before: Mapping[int, Any]) -> Measured:
        losses = self._measurements.losses_in([place.graph for place in places(unit.function)])
        return influences(pairs, losses, self._measurements.variables, lambda: _last_step(unit, before), was)


_SMALL = 4096
"""Elements."""


def _last_step(unit: Unit, before: Mapping[int, Any]) -> LastStep:
    last = unit.taken()
    args: list[Any] = [
        unit.resource(number) if number in unit.resources else last.arguments[number]
        for number in range(len(unit.function.graph.inputs))
    ]
    values = {**{number: last.arguments[number] for number in unit.variables}, **before}
    return LastStep(unit.function, args, values, unit.effects, unit.effects.given(last.effects, all_run=True))
