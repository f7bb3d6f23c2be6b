"""Repeats calls of a watched step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tb_gradflow.trace.nonfinite.flags import CountedFlags, ReturnedFlags
from tb_gradflow.trace.nonfinite.monitor import Again, same
from tb_gradflow.trace.nonfinite.replay import ReplayMonitor
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep
from tb_gradflow.trace.step.replicas import Measured


class CallReplayMonitor(ReplayMonitor):
    """Each call is a step.

    Args:
        step: The user's own step, ready to be traced.
        compiled: Compiles a step like the user's own.
        recorded: See `ReplayMonitor`.
        again: See `ReplayMonitor`.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]],
        recorded: Callable[..., Any],
        again: Again,
        instrumented: InstrumentedStep,
        devices: Sequence[str],
    ) -> None:
        flags = ReturnedFlags(*devices) if len(devices) == 1 else CountedFlags(devices)
        super().__init__(instrumented, recorded, again, flags, len(devices))
        self._step = compiled(self._flagged(step))
        self._calls: list[tuple[Any, Any, Any]] = []

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        self._begin()
        results = self._flags.parted(self._step(*args, **kwargs))
        self._calls.append((args, kwargs, results))
        self._held.add(args, kwargs, results)
        return results

    def _kept(self) -> int:
        return len(self._calls)

    def _forget(self) -> int:
        self._calls.clear()
        return self._held.largest

    def _repeated(self, first: int) -> Measured | None:
        for args, kwargs, before in self._calls[:first]:
            if not same(before, self._flags.parted(self._step(*args, **kwargs))):
                return None
        args, kwargs, before = self._calls[first]
        results, measured = self._measured(*args, **kwargs)
        return measured if same(before, results) else None
