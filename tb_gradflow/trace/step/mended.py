"""What has to change in a step for its gradients to be finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tb_gradflow.trace.engine.calls import places
from tb_gradflow.trace.experiments.graded import mended
from tb_gradflow.trace.experiments.loss_alone import LastStep
from tb_gradflow.trace.step.forward_values import step_values
from tb_gradflow.trace.step.measurements import Measured, Measurements


def mended_step(known: Any, measured: Measured, step: Callable[[], LastStep]) -> Measured:
    """What is known in addition of a broken step of which this was measured; nothing of one of several replicas. `step`
    returns it."""
    if not isinstance(known, Measurements):
        return {}
    losses = known.losses_in([place.graph for place in places(step().function)])
    return {"interventions": mended(step, losses, known.calls, known.numbered, measured, step_values(measured, 0))}
