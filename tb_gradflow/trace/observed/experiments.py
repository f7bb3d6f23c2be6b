"""Experiments with recorded steps: variables are moved after the first ones in which they get no gradient, and longer
and shorter steps are tried where the loss does not fall."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from tb_gradflow.trace.engine.calls import places
from tb_gradflow.trace.engine.copies import small_ones
from tb_gradflow.trace.experiments.answers import Pairs, Questions, answers
from tb_gradflow.trace.experiments.line_search import Progress
from tb_gradflow.trace.experiments.loss_alone import LastStep
from tb_gradflow.trace.nonfinite.guard import Unit
from tb_gradflow.trace.protection.foreign import faults
from tb_gradflow.trace.step.measurements import Measured, Measurements


class Experiments:
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
        self._progress = Progress()
        self._small = [small_ones(unit.function, _SMALL) for unit in units]
        self._before: list[dict[int, Any]] = []

    def begin(self) -> None:
        """Before a step that is recorded."""
        is_over = self._questions.are_over and self._progress.is_over
        self._before = [] if is_over else list(map(self._values_in, self._units, self._small))

    def of(self, measured: Measured) -> Measured:
        """What is known in addition after a step of which this was measured."""
        before, self._before = self._before, []
        new, is_small = self._questions.new(self._measurements.trace, measured["gradients"])
        was = self._measurements.by_target(measured)
        searches = self._progress.is_bad(list(was.values()))
        if not (new or is_small or searches) or not before:
            return {}
        found = [
            self._in(unit, new, was, measured, values, searches=searches, is_small=is_small)
            for unit, values in zip(self._units, before, strict=True)
        ]
        return {
            **{name: tuple(each for known in found for each in known[name]) for name in _ANSWERS},
            "not_moved": next((reason for known in found if (reason := known["not_moved"])), ""),
        }

    def _values_in(self, unit: Unit, small: Collection[int]) -> dict[int, Any]:
        """The values of its variables, by the number of the argument. Of large ones only those that the measurements
        keep anyway: TensorFlow copies what is kept when it changes."""
        own = {id(getattr(each.variable, "handle", None)) for each in self._measurements.variables}
        try:
            kept = [each for each in unit.variables if each in small or id(unit.resource(each)) in own]
            return {number: unit.value(number) for number in kept}
        except faults():  # computed in the step, or without a value before it
            return {}

    def _in(
        self,
        unit: Unit,
        pairs: Pairs,
        was: Mapping[int, float],
        measured: Measured,
        before: Mapping[int, Any],
        *,
        searches: bool,
        is_small: bool,
    ) -> Measured:
        known = self._measurements
        losses = known.losses_in([place.graph for place in places(unit.function)])
        after = self._values_in(unit, before) if searches else {}
        last = partial(_last_step, unit, before, after)
        return answers(
            pairs,
            losses,
            known.variables,
            last,
            was,
            known.numbered,
            measured,
            calls=known.calls,
            searches=searches,
            grades=is_small,
        )


_ANSWERS = ("influences", "reactions", "line_searches", "interventions", "slopes")

_SMALL = 4096
"""Elements."""


def _last_step(unit: Unit, before: Mapping[int, Any], after: Mapping[int, Any]) -> LastStep:
    last, resources = unit.taken(), {number: unit.resource(number) for number in unit.resources}
    args: list[Any] = [
        resources[number] if number in resources else last.arguments[number]
        for number in range(len(unit.function.graph.inputs))
    ]
    values = {**{number: last.arguments[number] for number in unit.variables}, **before}
    return LastStep(unit.function, args, values, unit.effects, unit.effects.given(last.effects, all_run=True), after)
