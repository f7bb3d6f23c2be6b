"""Observes custom gradients while a step is traced, and compares them after it has run.

Only `explain` does this: the step must return the inputs of such functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tensorflow.python.eager import record

from tb_gradflow.record.schema import GradientCheck, Trace
from tb_gradflow.trace.capture.instruments import Ask, Instrument, Request
from tb_gradflow.trace.custom_gradient_checks.comparison import Fetched, checked
from tb_gradflow.trace.custom_gradient_checks.probe import PLACES, PLACES_OF_ONE, Probe, probe_of
from tb_gradflow.trace.graph.custom_gradients import OwnGradient, own_gradient
from tb_gradflow.trace.graph.reach import needed_for

_PREFIX = "gradient_check"


class GradientChecks:
    """The custom gradients of one trace, by the name of their op."""

    def __init__(self) -> None:
        self.probes: dict[str, Probe] = {}

    def fetches(self) -> dict[str, Any]:
        """Tensors that the step must return, each with a unique name."""
        return {
            f"{_PREFIX}/{name}/{kind}/{place}": tensor
            for name, probe in self.probes.items()
            for kind, tensors in probe.fetches.items()
            for place, tensor in enumerate(tensors)
        }

    def filled(self, trace: Trace, values: Mapping[str, Any]) -> Trace:
        """The trace with the results of the comparison; `values` are those of `fetches`, empty if the step raised."""
        return replace(
            trace,
            gradient_checks=tuple(
                self._check(known, trace.ops[known.op].name.partition("@")[0], values)
                for known in trace.gradient_checks
            ),
        )

    def _check(self, known: GradientCheck, name: str, values: Mapping[str, Any]) -> GradientCheck:
        probe = self.probes.get(name)
        if probe is None:
            return replace(known, problem="it is inside a function, a loop or a branch")
        known = replace(known, problem=probe.problem, inputs=probe.wrong_shapes)
        if probe.part is None or not values:
            return known
        found = {
            kind: [values[f"{_PREFIX}/{name}/{kind}/{place}"] for place in range(len(tensors))]
            for kind, tensors in probe.fetches.items()
        }
        return checked(known, probe, Fetched(**found))


class CustomGradients(Instrument):
    """Examines custom gradients in a step that TensorFlow traces: requests the gradients of the results of such
    functions, too.

    Args:
        checks: Where to keep what is needed to compare them.
    """

    def __init__(self, checks: GradientChecks) -> None:
        self._checks = checks
        self._places: list[OwnGradient] = []
        self._arrived: list[Any] = []
        checks.probes.clear()

    def more(self) -> dict[str, Any]:
        return self._checks.fetches()

    def asking(self, request: Request, ask: Ask) -> Ask:
        is_of_step = request.is_of_step() and request.call.flattener.graph is request.symbols.root
        self._places = self._found(request) if is_of_step else []

        def asking(tape: Any, target: Any, wanted: list[Any], *rest: Any) -> list[Any]:
            answers: list[Any] = list(ask(tape, target, [*wanted, [_outputs(own) for own in self._places]], *rest))
            self._arrived = answers.pop()
            return answers

        return asking if is_of_step else ask

    def answered(self, asked: Any) -> None:
        self._look(self._arrived)

    def failed(self) -> None:
        self._look([[None] * len(own.results) for own in self._places])

    def _look(self, arrived: list[Any]) -> None:
        with record.stop_recording():
            for own, gradients in zip(self._places, arrived, strict=False):
                self._checks.probes[own.op.name] = probe_of(own, gradients)

    def _found(self, request: Request) -> list[OwnGradient]:
        ops = request.call.flattener.ops
        found: list[OwnGradient] = []
        met: dict[str, int] = {}
        for index in sorted(needed_for(ops, [ref.op for ref in request.call.targets]), reverse=True):
            known = ops[index].nested or ops[index].op.name in self._checks.probes
            own = None if known else own_gradient(ops[index].op, by_tape=True)
            if own is not None and met.get(own.function, 0) < PLACES_OF_ONE and len(found) < PLACES:
                met[own.function] = met.get(own.function, 0) + 1
                found.append(own)
        return found


def _outputs(own: OwnGradient) -> list[Any]:
    """The op's outputs that are its results."""
    return list(own.op.outputs)[: len(own.results)]
