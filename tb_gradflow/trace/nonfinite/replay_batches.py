"""Repeats steps of `fit` that are called with their batches, one step per execution.

Their batches are therefore kept without an op, and a step's flag is an additional result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tb_gradflow.trace.fit.keras3 import Fitting, OwnFunction
from tb_gradflow.trace.nonfinite.flags import ReturnedFlags
from tb_gradflow.trace.nonfinite.monitor import Again, same
from tb_gradflow.trace.nonfinite.replay import ReplayMonitor
from tb_gradflow.trace.nonfinite.replay_fit import device_of
from tb_gradflow.trace.nonfinite.replay_window import kept
from tb_gradflow.trace.protection.training import Execution
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep
from tb_gradflow.trace.step.recent_batches import dataset_of
from tb_gradflow.trace.step.replicas import Measured


class BatchReplayMonitor(ReplayMonitor):
    """Steps of a Keras 3 model that uses Keras's own training function and runs one step on one device.

    Args:
        fitted: The model.
        step: Its step, ready to be traced.
        instrumented: See `ReplayMonitor`.
        recorded: See `ReplayMonitor`; a training function.
        again: See `ReplayMonitor`.
    """

    def __init__(
        self,
        fitted: Fitting,
        step: Callable[..., Any],
        instrumented: InstrumentedStep,
        recorded: OwnFunction,
        again: Again,
    ) -> None:
        super().__init__(instrumented, recorded, again, ReturnedFlags(device_of(instrumented.touched)), 1)
        self._step = fitted.step_of_batch(self._flagged(step), recorded, is_paired=True)
        self._rate = fitted.learning_rate
        self._steps: list[tuple[Any, Any, Any]] = []

    def _run(self, execution: Execution, /, *args: Any, **kwargs: Any) -> Any:
        batch = self._step.drawn(execution)
        self._begin()
        # The learning rate, which callbacks change between steps.
        rate = None if self._rate is None else kept(self._rate)
        results = self._flags.parted(self._step(batch, execution))
        self._steps.append((batch, rate, results))
        self._held.add(batch, results)
        return results

    def _kept(self) -> int:
        return len(self._steps)

    def _forget(self) -> int:
        self._steps.clear()
        return self._held.largest

    def _repeated(self, first: int) -> Measured | None:
        for batch, rate, before in self._steps[:first]:
            self._set_rate(rate)
            if not same(before, self._flags.parted(self._step(batch))):
                return None
        batch, rate, before = self._steps[first]
        self._set_rate(rate)
        results, measured = self._measured(Execution(iter(dataset_of([batch], self._step.spec))))
        return measured if same(before, results) else None

    def _set_rate(self, rate: Any) -> None:
        if self._rate is not None:
            self._rate.assign(rate)
