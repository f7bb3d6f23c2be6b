"""One training of a session: which of its steps are recorded, and its log."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from tb_gradflow.trace.graph_v1.feeding import feeding_kept
from tb_gradflow.trace.log.options import Options
from tb_gradflow.trace.log.recorder import Recorder, fault_message, new_session
from tb_gradflow.trace.protection.training import Protection
from tb_gradflow.trace.protection.warning import warn
from tb_gradflow.trace.sessions.executions import Execution
from tb_gradflow.trace.sessions.plans import Plan
from tb_gradflow.trace.sessions.structure import Structure

SEVERAL = 2
"""A program that evaluates the gradients of variables this often may train them with NumPy."""

MOST_PLANS = 16
"""A program may fetch something else in each step. Above this number of kinds, others are not recorded."""


class Recording(Protocol):
    """What a training needs of the recording that it belongs to: see `program.recording`."""

    see: Callable[[str], None]

    def begin(self, name: str) -> Any: ...

    def drop(self, place: Any) -> None: ...

    def set_aside(self, place: Any, discard: Callable[[], None]) -> None: ...

    def counts(self, place: Any) -> None: ...

    def checked(self, place: Any) -> Options: ...

    def keeps(self, recorder: Any) -> None: ...

    def warn_once(self, message: str) -> None: ...


class Training:
    """The steps that belong to one training.

    Args:
        recording: Where it is recorded.
        name: The name of its run.
        structure: Makes the structure of its graph.
        of_variables: Whether its gradients are those of variables only.

    Attributes:
        protection: Keeps the faults of its recorder away from the program.
        is_evaluated: Whether the program only evaluates its gradients, and no op of the graph changes a variable with
            them.
    """

    def __init__(
        self,
        recording: Recording,
        name: str,
        structure: Callable[[], Structure],
        *,
        is_evaluated: bool,
        of_variables: bool,
    ) -> None:
        self.is_evaluated = is_evaluated
        self._of_variables = of_variables
        self.protection = Protection(self._report_fault, interrupted=self.flush)
        self.name = name
        self.steps = 0
        self._recording = recording
        self._make_structure = structure
        self._structure: Structure | None = None
        self._place: Any = None
        self._options: Options | None = None
        self._recorder: Recorder | None = None
        self._indices: dict[int, int] = {}
        self._plans = 0
        self._lock = threading.Lock()
        self._is_recording = False

    def claims_step(self) -> bool:
        """Whether the step that begins now is to be recorded. If so, `ends_step` must follow."""
        with self._lock:
            if self.protection.is_over or self._is_recording or not self._begins():
                return False
            assert self._options is not None
            self._is_recording = self._options.cadence.is_due(self.steps, self.steps == 0)
            return self._is_recording

    def ends_step(self) -> None:
        """The recorded step is over, completed or not."""
        self._is_recording = False

    def completed(self, seconds: float, *, recorded: bool) -> None:
        """A step has run."""
        with self._lock:
            self.steps += 1
            if self.steps == SEVERAL and self.is_evaluated and self._of_variables and self._place is not None:
                self._recording.counts(self._place)
            if self._options is not None:
                self._options.cadence.meter.took(seconds, recorded=recorded)
        if not recorded and self._recorder is not None:
            self._recorder.flush_if_due()

    def may_plan(self) -> bool:
        """Whether another kind of run may be planned."""
        if self._plans == MOST_PLANS:
            self._recording.warn_once(
                f"tb_gradflow: {self.name} runs or fetches other ops again and again. Only steps of the first "
                f"{MOST_PLANS} kinds are recorded: create the ops before the loop, and fetch the same in each step."
            )
        return self._plans < MOST_PLANS

    def plan(self, execution: Any, updates: Any) -> Plan:
        """What to fetch in a kind of run."""
        assert self._options is not None
        self._plans += 1
        settings = self._options.settings
        with feeding_kept(execution.graph):
            if self._structure is None:
                self._structure = self._make_structure()
            return Plan(
                self._structure,
                execution,
                updates,
                with_tensors=settings.tensors == "all",
                keep_source=settings.source,
            )

    def write(self, plan: Plan, measurements: dict[str, Any]) -> None:
        """Writes the step that has run last and is not counted yet."""
        recorder = self._opened()
        if id(plan) not in self._indices:
            self._indices[id(plan)] = recorder.add_trace(plan.trace)
        recorder.add_step(self.steps, self._indices[id(plan)], measurements)

    def write_structure(self, graph: Any) -> None:
        """Writes the structure of its graph alone."""
        if self._begins():
            self._opened().add_failed_trace(self.plan(Execution(graph), ()).trace)

    def _opened(self) -> Recorder:
        if self._recorder is None:
            assert self._options is not None
            session = new_session(self.name, expected=self._options.expected)
            self._recorder = Recorder(self._options.log_dir, session)
            self._recorder.meter = self._options.cadence.meter
            self._recorder.flush_at_end_of(self)
        return self._recorder

    def flush(self) -> None:
        """Makes everything recorded so far readable."""
        if self._recorder is not None:
            self._recorder.flush()

    def discard(self) -> None:
        """Records nothing any more, and gives up what was recorded."""
        self.protection.stop()
        if self._place is not None:
            self._recording.drop(self._place)
            self._place = self._recorder = None

    def _begins(self) -> bool:
        """Opens the run, the first time."""
        if self._options is None:
            self._place = self._recording.begin(self.name)
            if self._place is None:
                self.protection.stop()
                return False
            if self.is_evaluated:
                self._recording.set_aside(self._place, self.discard)
            self._options = self._recording.checked(self._place)
            self._recording.keeps(self)
        return True

    def _report_fault(self, fault: Exception) -> None:
        warn(fault_message(self.steps, fault))
        if self._recorder is None and self._place is not None:
            self._recording.drop(self._place)
            self._place = None
        else:
            self.flush()
