"""The steps of a training whose ops run as the program calls them: recorded while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tb_gradflow.trace.graph.variables import MadeTensor, Variables
from tb_gradflow.trace.step.broken_weights import BrokenWeights
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep, OnTrace, OpenStep
from tb_gradflow.trace.step.measurements import Measured
from tb_gradflow.trace.step.named_inputs import NameInputs
from tb_gradflow.trace.step.settings import Settings


class EagerSteps:
    """See `ObservedSteps`.

    Args:
        settings: What to record.
        inputs: Names the arguments of a step.
        on_trace: Called with the structure of each recorded step.
        on_fault: Called with a fault of the recorder.
    """

    def __init__(
        self, settings: Settings, inputs: NameInputs, on_trace: OnTrace, on_fault: Callable[[Exception], None]
    ) -> None:
        self.not_recorded = ""
        self._known = Variables()
        self._step = InstrumentedStep(lambda: None, self._variables, settings, on_trace, inputs, on_fault)
        self._open: OpenStep | None = None
        self.has_recorded = self.is_rented = self.is_first = self.tells = False
        self._given: tuple[Sequence[Any], Mapping[str, Any]] = ((), {})
        self._broken = BrokenWeights() if settings.guarded else None

    def begins(self, *, is_due: bool, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}) -> None:
        """Before the next step, which has these arguments."""
        self._given, self.has_recorded = (args, kwargs), False
        is_due = is_due or (self._broken is not None and self._broken.are_found())
        self._open = self._step.opened() if is_due else None

    def measured(self) -> Measured | None:
        """After it: what was recorded of it; `None` if it was not recorded."""
        opened, self._open = self._open, None
        if opened is None:
            return None
        measured = opened.closed(*self._given)
        self.has_recorded = bool(measured)
        if measured and self._broken is not None:
            self._broken.watch(self._known)
        return measured or None

    def raised(self, error: BaseException) -> None:
        """It has raised instead."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.abandon(error)

    def _variables(self) -> Variables:
        """Those that the last step read: those of the next one cannot be known in advance. Its tensors were its own."""
        known = [owned for owned in self._known if not isinstance(owned.variable, MadeTensor)]
        self._known = Variables(lambda: known)
        return self._known
