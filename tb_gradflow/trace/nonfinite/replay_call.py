"""Runs calls of a watched step again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tb_gradflow.trace.nonfinite.monitor import same
from tb_gradflow.trace.nonfinite.replay import FlaggedStep, Measure
from tb_gradflow.trace.nonfinite.replay_window import Held
from tb_gradflow.trace.protection.training import Execution
from tb_gradflow.trace.step.replicas import Measured


class CallExecutions:
    """Calls of a watched step, each of which is a step: see `Executions`.

    Args:
        flagged: The step.
        compiled: Compiles a step as the user's own is compiled, to be run in an execution.
    """

    counters: Sequence[Any] = ()

    def __init__(self, flagged: FlaggedStep, compiled: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self._flags = flagged.flags
        self._step = compiled(flagged.function)
        self._calls: list[tuple[Any, Any, Any]] = []
        self._held = Held()

    def run(self, begins: Callable[[], None], execution: Execution, /, *args: Any, **kwargs: Any) -> Any:
        begins()
        results = self._flags.parted(self._step(execution, *args, **kwargs))
        self._calls.append((args, kwargs, results))
        self._held.add(args, kwargs, results)
        return results

    @property
    def step_count(self) -> int:
        return len(self._calls)

    @property
    def is_full(self) -> bool:
        return self._held.is_full

    def forget(self) -> int:
        self._calls.clear()
        held, self._held = self._held, Held()
        return held.largest

    def repeated(self, first: int, measure: Measure) -> Measured | None:
        for args, kwargs, before in self._calls[:first]:
            if not same(before, self._flags.parted(self._step(Execution(), *args, **kwargs))):
                return None
        args, kwargs, before = self._calls[first]
        results, measured = measure(*args, **kwargs)
        return measured if same(before, results) else None
