"""Moves the variables of a training that get no gradient, after the first recorded steps in which they get none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tb_gradflow.trace.engine.calls import places
from tb_gradflow.trace.experiments.influences import Pairs, Questions, influences
from tb_gradflow.trace.experiments.loss_alone import LastStep
from tb_gradflow.trace.nonfinite.guard import Unit
from tb_gradflow.trace.step.measurements import Measured, Measurements


class Influences:
    """Those of one function.

    Args:
        units: What takes gradients in it.
        measurements: What is measured of it.
    """

    def __init__(self, units: Sequence[Unit], measurements: Measurements) -> None:
        self._units = units
        self._measurements = measurements
        self._questions = Questions()

    def of(self, measured: Measured) -> Measured:
        """What is known in addition after a step of which this was measured."""
        new = self._questions.new(self._measurements.trace, measured["gradients"])
        if not new:
            return {}
        found = [self._in(unit, new) for unit in self._units]
        return {
            "influences": tuple(each for known in found for each in known["influences"]),
            "not_moved": next((reason for known in found if (reason := known["not_moved"])), ""),
        }

    def _in(self, unit: Unit, pairs: Pairs) -> Measured:
        losses = self._measurements.losses_in([place.graph for place in places(unit.function)])
        return influences(pairs, losses, self._measurements.variables, lambda: _last_step(unit))


def _last_step(unit: Unit) -> LastStep:
    last = unit.taken()
    args: list[Any] = [
        unit.resource(number) if number in unit.resources else last.arguments[number]
        for number in range(len(unit.function.graph.inputs))
    ]
    values = {number: last.arguments[number] for number in unit.variables}
    return LastStep(unit.function, args, values, unit.effects, unit.effects.given(last.effects, all_run=True))
