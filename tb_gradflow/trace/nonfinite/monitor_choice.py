"""Selects the non-finite monitor that suits a training."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tb_gradflow.trace.fit.keras3 import Fitting, OwnFunction
from tb_gradflow.trace.log.workers import is_one_of_several
from tb_gradflow.trace.nonfinite.branch_monitor import BranchMonitor
from tb_gradflow.trace.nonfinite.monitor import Again, NonfiniteMonitor
from tb_gradflow.trace.nonfinite.replay_batches import BatchReplayMonitor
from tb_gradflow.trace.nonfinite.replay_call import CallReplayMonitor
from tb_gradflow.trace.nonfinite.replay_fit import FitReplayMonitor
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep


def monitor_of_fit(
    fitted: Fitting,
    step: Callable[..., Any],
    instrumented: InstrumentedStep,
    recorded: OwnFunction,
    again: Again,
) -> NonfiniteMonitor | None:
    """The monitor of a Keras training, after its first recorded step; `None` where no monitor can run.

    Args:
        fitted: The model.
        step: Its step, ready to be traced.
        instrumented: The same step, instrumented by the recorder.
        recorded: The training function that runs the instrumented step.
        again: Creates another one, to be traced again.
    """
    several = fitted.strategy.num_replicas_in_sync > 1
    if fitted.is_eager or is_one_of_several() or (several and fitted.is_for_xla):
        return None
    if several or fitted.is_for_xla or not _may_branch(instrumented):
        replayed = BatchReplayMonitor if fitted.is_of_batches else FitReplayMonitor
        return replayed(fitted, step, instrumented, recorded, again)

    # With one step per execution the count is known without a read; an optimizer may count something else.
    iterations = (lambda: fitted.iterations) if fitted.steps_per_execution > 1 else (lambda: None)
    compiled = functools.partial(fitted.monitoring, recorded=recorded)
    return BranchMonitor(step, instrumented, compiled, iterations)


def monitor_of_calls(
    step: Callable[..., Any],
    compiled: Callable[[Callable[..., Any], bool], Callable[..., Any]],
    instrumented: InstrumentedStep,
    recorded: Callable[..., Any],
    again: Again,
    devices: Sequence[str],
    *,
    for_xla: bool,
) -> NonfiniteMonitor:
    """The monitor of a watched step, after its first recorded call.

    Args:
        step: The user's step, ready to be traced.
        compiled: Compiles a step as the user's own is compiled, to be run in an execution; see `Execution.call` for its
            second argument.
        instrumented: The same step, instrumented by the recorder.
        recorded: The instrumented step, compiled.
        again: Compiles it again.
        devices: One for each replica.
        for_xla: Whether XLA compiles the user's step.
    """
    if for_xla or len(devices) > 1 or not _may_branch(instrumented):
        return CallReplayMonitor(step, compiled, recorded, again, instrumented, devices)
    return BranchMonitor(step, instrumented, lambda monitored: compiled(monitored, False), lambda: None)


def _may_branch(instrumented: InstrumentedStep) -> bool:
    """Whether a step can contain a branch that TensorFlow does not lower. Such a branch runs on one device and calls
    Python, which only the host can."""
    return not instrumented.for_xla and all("CPU" in variable.device for variable in instrumented.touched)
