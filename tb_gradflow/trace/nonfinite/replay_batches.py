"""Runs steps of `fit` again that are called with their batches, one step an execution.

So their batches are kept without an op, and a step's flag is one more of its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tb_gradflow.trace.fit.keras3 import Fitting, OwnFunction
from tb_gradflow.trace.nonfinite.monitor import same
from tb_gradflow.trace.nonfinite.replay import FlaggedStep, Measure
from tb_gradflow.trace.nonfinite.replay_window import Held, kept
from tb_gradflow.trace.protection.training import Execution
from tb_gradflow.trace.step.recent_batches import dataset_of
from tb_gradflow.trace.step.replicas import Measured


class BatchExecutions:
    """Steps of a model of Keras 3, whose function is its own and runs one step on one device: see `Executions`.

    Args:
        fitted: The model.
        flagged: Its step.
        recorded: The training function that runs the instrumented step.
    """

    counters: Sequence[Any] = ()

    def __init__(self, fitted: Fitting, flagged: FlaggedStep, recorded: OwnFunction) -> None:
        self._flags = flagged.flags
        self._step = fitted.step_of_batch(flagged.function, recorded, is_paired=True)
        self._rate = fitted.learning_rate
        self._steps: list[tuple[Any, Any, Any]] = []
        self._held = Held()

    def run(self, begins: Callable[[], None], execution: Execution, /, *args: Any, **kwargs: Any) -> Any:
        batch = self._step.drawn(execution)
        begins()
        # The learning rate, which callbacks change between steps.
        rate = None if self._rate is None else kept(self._rate)
        results = self._flags.parted(self._step(batch, execution))
        self._steps.append((batch, rate, results))
        self._held.add(batch, results)
        return results

    @property
    def step_count(self) -> int:
        return len(self._steps)

    @property
    def is_full(self) -> bool:
        return self._held.is_full

    def forget(self) -> int:
        self._steps.clear()
        held, self._held = self._held, Held()
        return held.largest

    def repeated(self, first: int, measure: Measure) -> Measured | None:
        for batch, rate, before in self._steps[:first]:
            self._set_rate(rate)
            if not same(before, self._flags.parted(self._step(batch))):
                return None
        batch, rate, before = self._steps[first]
        self._set_rate(rate)
        results, measured = measure(Execution(iter(dataset_of([batch], self._step.spec))))
        return measured if same(before, results) else None

    def _set_rate(self, rate: Any) -> None:
        if self._rate is not None:
            self._rate.assign(rate)
