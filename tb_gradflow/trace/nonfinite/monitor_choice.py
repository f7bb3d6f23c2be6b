"""Selects the non-finite monitor that suits a training."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tb_gradflow.trace.fit.keras3 import Fitting
from tb_gradflow.trace.log.workers import is_one_of_several
from tb_gradflow.trace.nonfinite.branch_monitor import BranchMonitor
from tb_gradflow.trace.nonfinite.flags import CountedFlags, ReturnedFlags
from tb_gradflow.trace.nonfinite.monitor import NonfiniteMonitor, RecordedStep
from tb_gradflow.trace.nonfinite.replay import Executions, FlaggedStep, ReplayMonitor
from tb_gradflow.trace.nonfinite.replay_batches import BatchExecutions
from tb_gradflow.trace.nonfinite.replay_call import CallExecutions
from tb_gradflow.trace.nonfinite.replay_fit import FitExecutions
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep


def monitor_of_fit(fitted: Fitting, step: Callable[..., Any], recorded: RecordedStep) -> NonfiniteMonitor | None:
    """The monitor of a Keras training, after its first recorded step; `None` where no monitor can run.

    Args:
        fitted: The model.
        step: Its step, ready to be traced.
        recorded: The recorder's version of it; its function is a training function.
    """
    several = fitted.strategy.num_replicas_in_sync > 1
    if fitted.is_eager or is_one_of_several() or (several and fitted.is_for_xla):
        return None
    if several or fitted.is_for_xla or not _may_branch(recorded.instrumented):
        return _replay_of_fit(fitted, step, recorded)

    # With one step an execution the count is known without a read; an optimizer may count something else.
    iterations = (lambda: fitted.iterations) if fitted.steps_per_execution > 1 else (lambda: None)
    compiled = functools.partial(fitted.monitoring, recorded=recorded.function)
    return BranchMonitor(step, recorded.instrumented, compiled, iterations)


def _replay_of_fit(fitted: Fitting, step: Callable[..., Any], recorded: RecordedStep) -> ReplayMonitor:
    several = fitted.strategy.num_replicas_in_sync > 1
    devices = fitted.strategy.extended.worker_devices if several else [_device_of(recorded.instrumented.touched)]
    executions: Executions
    if fitted.is_of_batches:
        flagged = FlaggedStep(step, ReturnedFlags(*devices))
        executions = BatchExecutions(fitted, flagged, recorded.function)
    else:
        flagged = FlaggedStep(step, CountedFlags(devices))
        executions = FitExecutions(fitted, flagged, recorded.function)
    return ReplayMonitor(recorded, flagged, executions)


@dataclass(frozen=True, slots=True)
class UsersCompilation:
    """How the user's own step is compiled.

    Attributes:
        compiled: Compiles a step like it, to be run in an execution; see `Execution.call` for its second argument.
        devices: One for each replica.
        for_xla: Whether XLA compiles it.
    """

    compiled: Callable[[Callable[..., Any], bool], Callable[..., Any]]
    devices: Sequence[str]
    for_xla: bool


def monitor_of_calls(step: Callable[..., Any], recorded: RecordedStep, users: UsersCompilation) -> NonfiniteMonitor:
    """The monitor of a watched step, after its first recorded call.

    Args:
        step: The user's step, ready to be traced.
        recorded: The recorder's version of it.
        users: How the user's own is compiled.
    """
    devices = users.devices
    if users.for_xla or len(devices) > 1 or not _may_branch(recorded.instrumented):
        is_paired = len(devices) == 1
        flagged = FlaggedStep(step, ReturnedFlags(*devices) if is_paired else CountedFlags(devices))
        executions = CallExecutions(flagged, lambda flagged_step: users.compiled(flagged_step, is_paired))
        return ReplayMonitor(recorded, flagged, executions)
    return BranchMonitor(step, recorded.instrumented, lambda monitored: users.compiled(monitored, False), lambda: None)


def _may_branch(instrumented: InstrumentedStep) -> bool:
    """Whether a step can contain a branch that TensorFlow does not lower. Such a branch runs on one device and calls
    Python, which only the host can."""
    return not instrumented.for_xla and all("CPU" in variable.device for variable in instrumented.touched)


def _device_of(variables: Sequence[Any]) -> str:
    """Where a model is: counters may be elsewhere."""
    found: str = next(each.device for each in variables if each.dtype.is_floating)
    return found
