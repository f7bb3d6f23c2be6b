"""The eager steps of a `fit`, as the callback records them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.fit.keras3 import Fitting, TrainFunction
from tb_gradflow.trace.observed.kept_step import KeptStep, step_of_statements
from tb_gradflow.trace.step.broken_weights import BrokenWeights
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep, OnTrace
from tb_gradflow.trace.step.measurements import Measured
from tb_gradflow.trace.step.settings import Settings

_FEW = range(17)
"""How many elements the state of a generator of random numbers has, or a counter."""


class EagerFit:
    """Executions whose ops run as the step calls them: see `ObservedSteps`."""

    is_rented = is_first = tells = False
    not_recorded = ""
    ago = 1

    def __init__(
        self, fitted: Fitting, settings: Settings, on_trace: OnTrace, on_fault: Callable[[Exception], None]
    ) -> None:
        self._fitted = fitted
        self._step = InstrumentedStep(fitted.step, fitted.variables, settings, on_trace, fitted.inputs, on_fault)
        self._last: Measured = {}
        self._batch: Any = None
        self._counters: list[tuple[Any, Any]] = []
        self._function: TrainFunction | None = None
        self._around: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
        self._of: TrainFunction | None = None
        self._is_due = False
        self._broken = BrokenWeights() if settings.guarded else None

    def begins(self, *, is_due: bool) -> None:
        self._is_due, self._last = is_due or (self._broken is not None and self._broken.are_found()), {}
        self._batch, self._step.before, self._counters = None, [], []  # the program may need the memory
        if self._is_due:
            listed = (each.variable for each in self._fitted.variables())
            counters = (each for each in listed if not each.dtype.is_floating and each.shape.num_elements() in _FEW)
            self._counters = [(each, each.read_value()) for each in counters]

    def _recorded(self, data: Any) -> Any:
        results, self._last = self._step(data)
        self._batch = data
        return results

    def kept(self) -> tuple[KeptStep, Any, Sequence[float]]:
        """The step that was recorded last, with its batch and its losses.

        Raises:
            NotRepeatable: it cannot be run again.
        """
        if not self._last:
            raise NotRepeatable("it did not run to its end")
        variables = [each.variable for each in self._fitted.variables()]
        losses = [float(each) for each in self._last["losses"]]
        return step_of_statements(variables, [*self._step.before, *self._counters]), self._batch, losses

    def looking_on(self) -> contextlib.AbstractContextManager[Any]:
        return self._around() if self._is_due else contextlib.nullcontext()

    def function(self, plain: TrainFunction) -> TrainFunction:
        """What runs an execution in the place of the model's own function."""
        if self._is_due and self._of is not plain:
            self._of = plain
            self._function, self._around = self._fitted.function_of(self._recorded)
        return self._function if self._is_due and self._function is not None else plain

    @property
    def has_recorded(self) -> bool:
        return bool(self._last)

    def measured(self) -> Measured | None:
        if self._last and self._broken is not None:
            self._broken.watch(self._fitted.variables())
        return self._last or None
