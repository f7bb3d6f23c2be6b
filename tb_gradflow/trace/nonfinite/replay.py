"""Catches the first step with a gradient that is not finite where the step cannot contain a branch.

XLA would run such a branch in every step, and it would disturb the order in which replicas run. So here the steps only
note which of them was the first. The monitor keeps the state at the start of a replay window and the batches since
then. To catch a step it restores that state, runs the steps again with the caught one instrumented, and puts everything
back.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import tensorflow as tf

from tb_gradflow.trace.nonfinite.flags import Flags
from tb_gradflow.trace.nonfinite.gradient_observer import (
    GradientObserver,
    draws_random_numbers,
    may_run_twice,
    observed,
)
from tb_gradflow.trace.nonfinite.monitor import CaughtStep, NonfiniteMonitor, RecordedStep, caught_step
from tb_gradflow.trace.nonfinite.replay_window import Window
from tb_gradflow.trace.protection.beside import beside
from tb_gradflow.trace.protection.training import Execution
from tb_gradflow.trace.step.replicas import Measured

# Seconds. Reading the flags takes 20 microseconds, and waits for an accelerator.
_PAUSE = 0.1


class FlaggedStep:
    """A step of the user's, ready to be traced, which also notes whether its gradients are finite.

    Args:
        step: The user's own.
        flags: Set by the step.

    Attributes:
        function: What to compile in its place.
        flags: See above.
        graphs: What it was traced to.
        fault: An exception of the recorder's part in it; `None` while there is none.
    """

    def __init__(self, step: Callable[..., Any], flags: Flags) -> None:
        self.flags = flags
        self.graphs: list[Any] = []
        self.fault: Exception | None = None

        def run(*args: Any, **kwargs: Any) -> Any:
            self.graphs.append(tf.compat.v1.get_default_graph())
            flags.begin()
            return flags.beside(beside(lambda: step(*args, **kwargs), self._observed, self.failed))

        self.function: Callable[..., Any] = run

    def _observed(self) -> contextlib.AbstractContextManager[None]:
        observers = [GradientObserver(self.flags.note, self.failed, in_xla=True) for _ in range(self.flags.replicas)]
        return observed(observers, self.failed)

    def failed(self, fault: Exception) -> None:
        """The recorder's part in the step has failed."""
        self.fault = self.fault or fault


Measure = Callable[..., tuple[Any, Measured]]
"""Runs the step that records: its results, and what it has measured."""


class Executions(Protocol):
    """Runs the flagged step of a training, in executions of one step or of several, and can run them again.

    Attributes:
        counters: Variables that change in an execution, outside of its steps.
    """

    counters: Sequence[Any]

    def run(self, begins: Callable[[], None], execution: Execution, /, *args: Any, **kwargs: Any) -> Any:
        """One execution, kept: its results. Calls `begins` once its batch is there, before its first step."""

    @property
    def step_count(self) -> int:
        """How many steps are kept."""

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more of them."""

    def forget(self) -> int:
        """Drops what is kept, and returns how many bytes it was for one step."""

    def repeated(self, first: int, measure: Measure) -> Measured | None:
        """Runs the steps that are kept again, step `first` with `measure`, and returns its statistics. `None` if they
        do something else than before."""


class ReplayMonitor(NonfiniteMonitor):
    """Runs the steps of a training in replay windows.

    Args:
        recorded: The recorder's version of the step.
        flagged: The step that runs.
        executions: Run it.
    """

    def __init__(self, recorded: RecordedStep, flagged: FlaggedStep, executions: Executions) -> None:
        super().__init__()
        self._recorded = recorded
        self._flagged = flagged
        self._flags = flagged.flags
        self._executions = executions
        self._window = Window([*recorded.instrumented.touched, *executions.counters])
        self._asked = 0.0

    @property
    def fault(self) -> Exception | None:
        return self._flagged.fault

    def _run(self, execution: Execution, /, *args: Any, **kwargs: Any) -> Any:
        return self._executions.run(self._begins, execution, *args, **kwargs)

    def _begins(self) -> None:
        """Before each execution."""
        if not self._window.is_open:
            self._flags.reset()
            self._window.open()

    def settled(self) -> bool:
        """See `NonfiniteMonitor`. Closes the replay window: the next step does not continue the last one."""
        if not self._window.is_open:
            return False
        if self._flags.first is not None:
            return True
        self._window.close(self._flags.count, self._executions.forget)
        return False

    def caught_by_now(self) -> bool:
        """The same every 0.1 s, and at the end of a replay window."""
        now = time.monotonic()
        if now - self._asked >= _PAUSE:
            self._asked = now
            if self._flags.first is not None:
                return True
        ends = self._executions.step_count >= self._window.length or self._executions.is_full
        return ends and self.settled()

    def measure(self) -> CaughtStep | None:
        """See `NonfiniteMonitor`. It compares the results of the steps before, or of the step itself."""
        first = self._flags.first
        if first is None or not all(may_run_twice(graph) for graph in self._flagged.graphs):
            return None
        ago = self._flags.count - first
        return self._with_values(first, ago) or self._caught(first, ago, self._recorded.function)

    def _with_values(self, first: int, ago: int) -> CaughtStep | None:
        """The step with its forward pass measured; `None` where that fails, or the step then does something else."""
        # The step runs without XLA then, which takes minutes to compile it, and would draw other numbers.
        if self._flags.replicas > 1 or any(draws_random_numbers(graph) for graph in self._flagged.graphs):
            return None
        try:
            with self._recorded.instrumented.measuring_values():
                return self._caught(first, ago, self._recorded.again())
        except Exception:
            return None

    def _caught(self, first: int, ago: int, recorded: Callable[..., Any]) -> CaughtStep | None:
        def measure(*args: Any, **kwargs: Any) -> tuple[Any, Measured]:
            results, measured = recorded(*args, **kwargs)
            return results, measured or self._recorded.instrumented.left()

        with self._window.reopened():
            measured = self._executions.repeated(first, measure)
        return None if measured is None else caught_step(measured, ago)
