"""Catches the first step with a gradient that is not finite where the step cannot contain a branch.

XLA would run such a branch in every step, and it would disturb the order in which replicas run. So here the steps only
flag which of them was the first. The monitor keeps the state at the start of a replay window and the batches since
then. To catch a step it restores that state, runs the steps again with the caught one instrumented, and restores
everything.
"""

from __future__ import annotations

import abc
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.nonfinite.flags import Flags
from tb_gradflow.trace.nonfinite.gradient_observer import (
    GradientObserver,
    draws_random_numbers,
    may_run_twice,
    observed,
)
from tb_gradflow.trace.nonfinite.monitor import Again, CaughtStep, NonfiniteMonitor, caught_step
from tb_gradflow.trace.nonfinite.replay_window import Held, Window
from tb_gradflow.trace.protection.beside import beside
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep
from tb_gradflow.trace.step.replicas import Measured

# Seconds. Reading the flags takes 20 microseconds, and waits for an accelerator.
_PAUSE = 0.1


class ReplayMonitor(NonfiniteMonitor):
    """What all replays share.

    Args:
        instrumented: The recorder's version of the step, which has run before.
        recorded: That version, compiled like the user's own.
        again: Compiles it again, to measure the forward pass too.
        flags: Set by the steps.
        replicas: The replicas of the steps in this process.
        counters: Variables that change in an execution, outside of its steps.
    """

    def __init__(
        self,
        instrumented: InstrumentedStep,
        recorded: Callable[..., Any],
        again: Again,
        flags: Flags,
        replicas: int,
        counters: Sequence[Any] = (),
    ) -> None:
        super().__init__()
        self._fault: Exception | None = None
        self._held = Held()
        self._window = Window([*instrumented.touched, *counters])
        self._left = instrumented.left
        self._instrumented = instrumented
        self._recorded = recorded
        self._again = again
        self._flags = flags
        self._replicas = replicas
        self._graphs: list[Any] = []
        self._asked = 0.0

    @property
    def fault(self) -> Exception | None:
        return self._fault

    def settled(self) -> bool:
        """See `NonfiniteMonitor`. Closes the replay window: the next step does not continue the last one."""
        if not self._window.is_open:
            return False
        if self._flags.first is not None:
            return True
        self._window.close(self._flags.count, self._forget)
        return False

    def caught_by_now(self) -> bool:
        """The same every 0.1 s, and at the end of a replay window."""
        now = time.monotonic()
        if now - self._asked >= _PAUSE:
            self._asked = now
            if self._flags.first is not None:
                return True
        return (self._kept() >= self._window.length or self._held.is_full) and self.settled()

    def measure(self) -> CaughtStep | None:
        """See `NonfiniteMonitor`. It compares the results of the steps before, or of the step itself."""
        first = self._flags.first
        if first is None or not all(may_run_twice(graph) for graph in self._graphs):
            return None
        ago = self._flags.count - first
        return self._with_values(first, ago) or self._caught(first, ago)

    def _with_values(self, first: int, ago: int) -> CaughtStep | None:
        """The step with its forward pass measured; `None` if that fails, or if the step then behaves differently."""
        # The step then runs without XLA, which takes minutes to compile it, and would draw different numbers.
        if self._replicas > 1 or any(draws_random_numbers(graph) for graph in self._graphs):
            return None
        plain = self._recorded
        try:
            with self._instrumented.measuring_values():
                self._recorded = self._again()
                return self._caught(first, ago)
        except Exception:
            return None
        finally:
            self._recorded = plain

    def _caught(self, first: int, ago: int) -> CaughtStep | None:
        with self._window.reopened():
            measured = self._repeated(first)
        return None if measured is None else caught_step(measured, ago)

    def _begin(self) -> None:
        """Before each execution."""
        if not self._window.is_open:
            self._flags.reset()
            self._held = Held()
            self._window.open()

    def _flagged(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step with a flag for whether its gradients are finite."""

        def run(*args: Any, **kwargs: Any) -> Any:
            self._graphs.append(tf.compat.v1.get_default_graph())
            self._flags.begin()
            results = beside(lambda: step(*args, **kwargs), self._observed, self._failed)
            return self._flags.beside(results)

        return run

    def _observed(self) -> contextlib.AbstractContextManager[None]:
        observers = [GradientObserver(self._flags.note, self._failed, in_xla=True) for _ in range(self._replicas)]
        return observed(observers, self._failed)

    def _measured(self, *args: Any, **kwargs: Any) -> tuple[Any, Measured]:
        """Runs the instrumented step: its results, and its measurements."""
        results, measured = self._recorded(*args, **kwargs)
        return results, measured or self._left()

    def _failed(self, fault: Exception) -> None:
        self._fault = self._fault or fault

    @abc.abstractmethod
    def _kept(self) -> int:
        """How many steps can be run again."""

    @abc.abstractmethod
    def _forget(self) -> int:
        """Drops the batches, and returns how many bytes were kept for one step."""

    @abc.abstractmethod
    def _repeated(self, first: int) -> Measured | None:
        """Runs the steps of the replay window again, with step `first` instrumented, and returns its statistics. `None`
        if their results differ from before.
        """
