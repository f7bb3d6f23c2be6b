"""Which guard against gradients that are not finite suits which training."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tb_gradflow.trace.caught import Guarding
from tb_gradflow.trace.fitting import Fitting, TrainFunction
from tb_gradflow.trace.nonfinite_step import NonfiniteStep
from tb_gradflow.trace.replay_batches import ReplayedBatches
from tb_gradflow.trace.replay_fit import ReplayedFit
from tb_gradflow.trace.step import InstrumentedStep
from tb_gradflow.trace.workers import is_one_of_several


def guard_of_fit(
    fitted: Fitting, step: Callable[..., Any], instrumented: InstrumentedStep, recorded: TrainFunction
) -> Guarding | None:
    """The guard of a Keras training whose recorded step has run; null where there is none.

    Args:
        fitted: The model.
        step: Its step, as it is to be traced.
        instrumented: The step, as it is recorded.
        recorded: The training function that records.
    """
    several = fitted.strategy.num_replicas_in_sync > 1
    if fitted.is_eager or is_one_of_several() or (several and fitted.is_for_xla):
        return None
    if several or fitted.is_for_xla or not may_branch(instrumented):
        replayed = ReplayedBatches if fitted.is_of_batches else ReplayedFit
        return replayed(fitted, step, instrumented, recorded)

    # Of one step an execution it is known without asking; an optimizer may count something else.
    iterations = (lambda: fitted.iterations) if fitted.steps_per_execution > 1 else (lambda: None)
    compiled = functools.partial(fitted.guarding, recorded=recorded)
    return NonfiniteStep(step, instrumented, compiled, iterations)


def may_branch(instrumented: InstrumentedStep) -> bool:
    """Whether a branch that TensorFlow does not lower can be a part of a step: it runs on one device, and calls Python,
    which only the host can."""
    return not instrumented.for_xla and all("CPU" in variable.device for variable in instrumented.touched)
