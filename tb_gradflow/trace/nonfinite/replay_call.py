"""Repeats calls of a watched step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tb_gradflow.trace.nonfinite.flags import CountedFlags, ReturnedFlags
from tb_gradflow.trace.nonfinite.monitor import Again, same
from tb_gradflow.trace.nonfinite.replay import ReplayMonitor
from tb_gradflow.trace.protection.training import Execution
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep
from tb_gradflow.trace.step.replicas import Measured


class CallReplayMonitor(ReplayMonitor):
    """Each call is a step.

    Args:
        step: The user's own, as it is to be traced.
        compiled: Compiles a step as the user's own is compiled, to be run in an execution; see `Execution.call` for its
            second argument.
        recorded: See `ReplayMonitor`.
        again: See `ReplayMonitor`.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        compiled: Callable[[Callable[..., Any], bool], Callable[..., Any]],
        recorded: Callable[..., Any],
        again: Again,
        instrumented: InstrumentedStep,
        devices: Sequence[str],
    ) -> None:
        is_paired = len(devices) == 1
        flags = ReturnedFlags(*devices) if is_paired else CountedFlags(devices)
        super().__init__(instrumented, recorded, again, flags, len(devices))
        self._step = compiled(self._flagged(step), is_paired)
        self._calls: list[tuple[Any, Any, Any]] = []

    def _run(self, execution: Execution, /, *args: Any, **kwargs: Any) -> Any:
        self._begin()
        results = self._flags.parted(self._step(execution, *args, **kwargs))
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
            if not same(before, self._flags.parted(self._step(Execution(), *args, **kwargs))):
                return None
        args, kwargs, before = self._calls[first]
        results, measured = self._measured(*args, **kwargs)
        return measured if same(before, results) else None
