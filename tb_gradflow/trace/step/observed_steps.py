"""The steps of a training that the program compiles and runs itself: observed while they are traced, and recorded by
functions made from that trace."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.capture.collector import Collector, Scope
from tb_gradflow.trace.capture.instruments import Instrument
from tb_gradflow.trace.capture.symbols import ObservedSymbols
from tb_gradflow.trace.capture.term_gradients import TermGradients
from tb_gradflow.trace.engine.switches import switch_of
from tb_gradflow.trace.graph.build_trace import trace_of
from tb_gradflow.trace.graph.variables import Variables
from tb_gradflow.trace.protection.substitutes import Ours, Run
from tb_gradflow.trace.step.named_inputs import NameInputs
from tb_gradflow.trace.step.observation import observation_in, observed
from tb_gradflow.trace.step.recorded_function import Measured, RecordedFunction
from tb_gradflow.trace.step.settings import Settings

OnTrace = Callable[[Trace, BaseException | None], None]
"""Called with the structure of a step before it is first recorded; or with that of one that raised while it was traced,
and the exception."""


class ObservedSteps:
    """Looks on while a program trains: see `engine.tracing.Onlooker`.

    Args:
        variables: Returns the model's variables when a trace begins.
        settings: What to record.
        inputs: Names the arguments of a step.
        on_trace: See `OnTrace`.
        on_fault: Called with a fault of the recorder.
        told: Returns the context in which a recorded form is made and first run, which may take long.

    Attributes:
        is_due: Whether the next step is recorded.
        has_recorded: Whether the last one was.
    """

    def __init__(
        self,
        variables: Callable[[], Variables],
        settings: Settings,
        inputs: NameInputs,
        on_trace: OnTrace,
        on_fault: Callable[[Exception], None],
        told: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self.is_due = self.has_recorded = False
        self._variables = variables
        self._settings = settings
        self._inputs = inputs
        self._on_trace = on_trace
        self._told = told
        self._traces = 0
        self._recorded: dict[int, tuple[Any, RecordedFunction | None]] = {}
        self._last: RecordedFunction | None = None
        self.failed = on_fault

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        collector = Collector(self._variables(), ObservedSymbols(), Scope(self._settings.tensors), self._instruments())
        with observed([collector], self._raised):
            yield
        if collector.fault is not None:
            raise collector.fault

    def traced(self, function: Any) -> None:
        if observation_in(function) is not None:
            switch_of(function)

    def choose(self, function: Any) -> Ours | None:
        if (not self.is_due or self.has_recorded) and not switch_of(function).unshared:
            return None
        recorded = self._form_of(function)
        return self._recording(recorded) if recorded is not None and self.is_due and not self.has_recorded else None

    def is_own(self, error: BaseException) -> bool:
        return self._last is not None and self._last.is_own(error)

    def begins(self, *, is_due: bool, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}) -> None:
        """Before the next step."""
        self.is_due, self.has_recorded, self._last = is_due, False, None

    def raised(self, error: BaseException) -> None:
        """It has raised."""

    def measured(self) -> Measured | None:
        """After it: what was recorded of it; `None` if it was not recorded."""
        if self._last is None or not self.has_recorded:
            return None
        return self._last.take()

    def _recording(self, recorded: RecordedFunction) -> Ours:
        def ours(run: Run, args: Sequence[Any]) -> None:
            self._last = recorded
            with contextlib.nullcontext() if recorded.has_run else self._told():
                recorded(run, args)
            self.has_recorded = True

        return ours

    def _form_of(self, function: Any) -> RecordedFunction | None:
        """The recorded form of a function, which is made when it is first needed."""
        if id(function) not in self._recorded:
            observation = observation_in(function)
            self._recorded[id(function)] = (function, None)
            if observation is not None:
                with self._told():
                    made = RecordedFunction(observation, function, self._settings, self._inputs, self._traces)
                self._traces += 1
                self._on_trace(made.trace, None)
                self._recorded[id(function)] = (function, made)
        return self._recorded[id(function)][1]

    def _instruments(self) -> list[Instrument]:
        return [TermGradients(exact=True)] if self._settings.terms else []

    def _raised(self, error: BaseException, collector: Collector) -> None:
        """The user's step has raised while it was traced: what was observed until then is reported, and nothing
        replaces that error."""
        if collector.calls and collector.fault is None:
            with contextlib.suppress(Exception):
                collector.finish()
                trace = trace_of(collector, self._traces, keep_source=self._settings.source)
                self._traces += 1
                self._on_trace(trace, error)
