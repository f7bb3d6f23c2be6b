"""Runs a recorded step again whose loss or gradient is not finite, to measure its forward pass as well.

This measurement keeps ops separate that a plain step may merge, so it is never done in a step that trains the model.
Before each recorded step the values of its variables are kept, until the first step that is not finite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tb_gradflow.trace.nonfinite.gradient_observer import draws_random_numbers, may_run_twice
from tb_gradflow.trace.nonfinite.monitor import Again
from tb_gradflow.trace.nonfinite.replay_window import Window
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep


class RecordedAgain:
    """The recorded steps of one training.

    Args:
        instrumented: The step.
        again: See `Again`. Its result runs without XLA.
        for_xla: Whether the training itself is compiled by XLA.
    """

    def __init__(self, instrumented: InstrumentedStep, again: Again, *, for_xla: bool) -> None:
        self._instrumented = instrumented
        self._again = again
        self._for_xla = for_xla
        self._window: Window | None = None
        self._kept: set[int] = set()
        self._is_over = False

    def begins(self, expected: Sequence[Any]) -> None:
        """Called before a recorded step. `expected` are the variables that the first one may change; those of the
        others are known by then.
        """
        state = self._instrumented.touched or expected
        if self._is_over or not state or not all("CPU" in variable.device for variable in state):
            return
        self._kept = {id(variable) for variable in state}
        self._window = Window(state)
        self._window.open()

    def measured(self, values: Mapping[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        """After it: what the same step measures with its forward pass; `None` where that was finite, or it may not run
        twice, or does something else then. `values` are what it has measured."""
        window, self._window = self._window, None
        if window is None or not self._instrumented.is_broken(values):
            return None
        self._is_over = True
        graph = self._instrumented.graph
        is_kept = self._kept.issuperset(map(id, self._instrumented.touched))
        if graph is None or not is_kept or not may_run_twice(graph):
            return None
        if self._for_xla and draws_random_numbers(graph):
            return None
        try:
            with window.reopened(), self._instrumented.measuring_values():
                _, measured = self._again()(*args, **kwargs)
            found = {name: value.numpy() for name, value in measured.items()}
        except Exception:
            return None
        return found if found and self._instrumented.is_broken(found) else None
