"""Checks custom gradients in an eager step, where their values are available.

The forward computation is extracted from the step's shadow graph, and after the tape has called the gradient function,
it is called once more with a smaller gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record

from tb_gradflow.trace.custom_gradient_checks.probe import (
    PLACES,
    PLACES_OF_ONE,
    Probe,
    part_of,
    raised_by,
    smaller,
)
from tb_gradflow.trace.custom_gradient_checks.step_checks import GradientChecks
from tb_gradflow.trace.custom_gradient_checks.subgraph import CannotCutError
from tb_gradflow.trace.eager.shadow import Shadow
from tb_gradflow.trace.graph.custom_gradients import OwnGradient
from tb_gradflow.trace.protection.foreign import faults
from tb_gradflow.trace.tf_internals.outside_tapes import untaped

_BY_KEYWORD = "its function is called with keyword arguments, and TensorFlow uses it only for positional ones"


@dataclass(frozen=True, slots=True)
class _Answer:
    own: OwnGradient
    upstream: Sequence[Any]
    returned: Sequence[Any]
    answered: Sequence[Any]


class EagerChecks:
    """The custom gradients of one eager step."""

    def __init__(self, shadow: Shadow, checks: GradientChecks) -> None:
        self._shadow = shadow
        self._checks = checks
        self._answers: dict[str, _Answer] = {}
        checks.probes.clear()

    def watched(self, own: OwnGradient, backward: Callable[..., Any]) -> Callable[..., Any]:
        """The gradient function, wrapped so that its first result is kept."""

        def noting(*upstream: Any) -> Any:
            same = sum(answer.own.function == own.function for answer in self._answers.values())
            if self._shadow.is_paused or same >= PLACES_OF_ONE or len(self._answers) >= PLACES:
                return backward(*upstream)
            try:
                returned = backward(*upstream)
            except faults() as error:
                self._checks.probes[own.op.name] = Probe(own, problem=raised_by(error))
                raise
            with self._shadow.paused(), record.stop_recording():
                answered = untaped(backward, *map(smaller, upstream))
            self._answers[own.op.name] = _Answer(own, upstream, list(returned), list(answered))
            return returned

        return noting

    def passed_over(self, own: OwnGradient) -> None:
        """Records that the gradient function is never used: its function was called with no positional argument."""
        self._checks.probes[own.op.name] = Probe(own, problem=_BY_KEYWORD)

    def finish(self) -> None:
        """Called when the step is over: finds the forward computations."""
        for name, answer in self._answers.items():
            self._checks.probes[name] = self._probe(answer)

    def values(self) -> dict[str, Any]:
        """The values, under the names of `GradientChecks.fetches`."""
        fetches = self._checks.fetches()
        return {
            name: tensor if isinstance(tensor, tf.__internal__.EagerTensor) else self._shadow.actual(tensor)
            for name, tensor in fetches.items()
        }

    def _probe(self, answer: _Answer) -> Probe:
        probe = Probe(answer.own)
        try:
            part, probe.slots = part_of(answer.own)
            if any(self._shadow.actual(tensor) is None for tensor in (*part.fed, *part.results)):
                raise CannotCutError("the step ran eagerly, and some of its values were not kept")
        except CannotCutError as reason:
            probe.problem = str(reason)
            return probe
        probe.take(part, answer.upstream, answer.returned, answer.answered)
        return probe
