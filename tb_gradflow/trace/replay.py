"""Finds the first step with a gradient that is not finite where no branch can be a part of the step, and repeats it.

XLA would run the branch that `sentinel` adds in every step, and replicas take turns in ways that it would disturb. So
here the steps only note which of them was the first. The state is kept as it was some steps ago, and the batches since
then; from there the steps are run again, the one in question instrumented, and everything is put back.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.caught import Caught, Guarding, caught
from tb_gradflow.trace.flags import Flags
from tb_gradflow.trace.guard import Guard, may_run_twice
from tb_gradflow.trace.patches import watching
from tb_gradflow.trace.replicas import Measured
from tb_gradflow.trace.step import InstrumentedStep
from tb_gradflow.trace.window import Held, Window

# Seconds. To ask takes 20 microseconds, and waits for an accelerator.
_PAUSE = 0.1


class Replay(Guarding):
    """What it takes, whoever runs the steps.

    Args:
        instrumented: The recorder's version of the step, which has run before.
        recorded: That version, compiled as the user's own is.
        flags: Told by the steps.
        replicas: Of the steps in this process.
        counters: Variables that change in an execution, outside of its steps.
    """

    def __init__(
        self,
        instrumented: InstrumentedStep,
        recorded: Callable[..., Any],
        flags: Flags,
        replicas: int,
        counters: Sequence[Any] = (),
    ) -> None:
        super().__init__()
        self._fault: Exception | None = None
        self._held = Held()
        self._window = Window([*instrumented.touched, *counters])
        self._left = instrumented.left
        self._recorded = recorded
        self._flags = flags
        self._replicas = replicas
        self._graphs: list[Any] = []
        self._asked = 0.0

    @property
    def fault(self) -> Exception | None:
        return self._fault

    def settled(self) -> bool:
        """Whether a step that has run had a gradient that is not finite; the next is no continuation of it."""
        if not self._window.is_open:
            return False
        if self._flags.first is not None:
            return True
        self._window.close(self._flags.count, self._forget)
        return False

    def caught_by_now(self) -> bool:
        """The same, now and then, and at the end of a stretch."""
        now = time.monotonic()
        if now - self._asked >= _PAUSE:
            self._asked = now
            if self._flags.first is not None:
                return True
        return (self._kept() >= self._window.length or self._held.is_full) and self.settled()

    def measure(self) -> Caught | None:
        """See `Guarding`. What is compared is the result of the steps before, or of the step itself."""
        first = self._flags.first
        if first is None or not all(may_run_twice(graph) for graph in self._graphs):
            return None
        ago = self._flags.count - first
        with self._window.reopened():
            measured = self._repeated(first)
        return None if measured is None else caught(measured, ago)

    def _begin(self) -> None:
        """Before each execution."""
        if not self._window.is_open:
            self._flags.reset()
            self._held = Held()
            self._window.open()

    def _guarded(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step with a note of whether its gradients are finite."""

        def run(*args: Any, **kwargs: Any) -> Any:
            self._graphs.append(tf.compat.v1.get_default_graph())
            self._flags.begin()
            with watching(*(Guard(self._flags.note, self._failed, in_xla=True) for _ in range(self._replicas))):
                return self._flags.beside(step(*args, **kwargs))

        return run

    def _measured(self, *args: Any, **kwargs: Any) -> tuple[Any, Measured]:
        """Runs the step that records: its results, and what it has measured."""
        results, measured = self._recorded(*args, **kwargs)
        return results, measured or self._left()

    def _failed(self, fault: Exception) -> None:
        self._fault = self._fault or fault

    @abc.abstractmethod
    def _kept(self) -> int:
        """How many steps can be run again."""

    @abc.abstractmethod
    def _forget(self) -> int:
        """Lets go of the batches, which will not be needed; how many bytes were held for one of the steps."""

    @abc.abstractmethod
    def _repeated(self, first: int) -> Measured | None:
        """Runs the steps since the stretch began again, that of number `first` instrumented: its numbers. Null if they
        do not what they did."""
