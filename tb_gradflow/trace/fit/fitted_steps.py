"""The steps of a `fit`, compiled or eager, as the callback records them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from tb_gradflow.trace.fit.keras3 import Fitting, TrainFunction
from tb_gradflow.trace.log.progress import told_if_long
from tb_gradflow.trace.log.recorder import Tracing
from tb_gradflow.trace.observed.observed_steps import ObservedSteps
from tb_gradflow.trace.step.broken_weights import BrokenWeights
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep, OnTrace
from tb_gradflow.trace.step.measurements import Measured
from tb_gradflow.trace.step.settings import Settings


class ObservedFit(ObservedSteps):
    """Compiled executions of a training function, of one step or several."""

    def __init__(
        self, fitted: Fitting, settings: Settings, tracing: Tracing, on_fault: Callable[[Exception], None]
    ) -> None:
        super().__init__(
            fitted.variables, settings, fitted.inputs, tracing.finished, on_fault, told_if_long, fitted.counter
        )

    def begins_with(self, plain: TrainFunction, *, is_due: bool) -> None:
        """Before the next execution."""
        self.begins(is_due=is_due)

    def function(self, plain: TrainFunction) -> TrainFunction:
        """What runs it: the model's own."""
        return plain


class EagerFit:
    """Executions whose ops run as the step calls them."""

    is_rented = is_first = tells = False
    not_recorded = ""
    ago = 1

    def __init__(
        self, fitted: Fitting, settings: Settings, on_trace: OnTrace, on_fault: Callable[[Exception], None]
    ) -> None:
        self._fitted = fitted
        self._step = InstrumentedStep(fitted.step, fitted.variables, settings, on_trace, fitted.inputs, on_fault)
        self._last: Measured = {}
        self._function: TrainFunction | None = None
        self._around: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
        self._of: TrainFunction | None = None
        self._is_due = False
        self._broken = BrokenWeights() if settings.guarded else None

    def begins_with(self, plain: TrainFunction, *, is_due: bool) -> None:
        is_due = is_due or (self._broken is not None and self._broken.are_found())
        self._is_due, self._last = is_due, {}
        if is_due and self._of is not plain:
            self._of = plain
            self._function, self._around = self._fitted.function_of(self._recorded)

    def _recorded(self, data: Any) -> Any:
        results, self._last = self._step(data)
        return results

    def looking_on(self) -> contextlib.AbstractContextManager[Any]:
        return self._around() if self._is_due else contextlib.nullcontext()

    def function(self, plain: TrainFunction) -> TrainFunction:
        return self._function if self._is_due and self._function is not None else plain

    @property
    def has_recorded(self) -> bool:
        return bool(self._last)

    def measured(self) -> Measured | None:
        if self._last and self._broken is not None:
            self._broken.watch(self._fitted.variables())
        return self._last or None
