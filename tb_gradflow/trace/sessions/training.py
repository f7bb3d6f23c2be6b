"""One training of a session: which of its steps are recorded, and its log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from tb_gradflow.trace.graph_v1.feeding import feeding_kept
from tb_gradflow.trace.log.recorder import Tracing
from tb_gradflow.trace.log.watched_run import WatchedRun
from tb_gradflow.trace.sessions.again import Again, Run
from tb_gradflow.trace.sessions.executions import Execution
from tb_gradflow.trace.sessions.plans import Plan
from tb_gradflow.trace.sessions.structure import Structure

SEVERAL = 2
"""A program that evaluates the gradients of variables this often may train them with NumPy."""

MOST_LOST = 4
"""So often a loss that is not finite has a step recorded. It may be that of a batch that is only looked at."""

RISEN = 2.0
"""So far above its average a loss has risen."""

MOST_PLANS = 16
"""A program may fetch something else in each step. Above this number of kinds, others are not recorded."""


class Recording(Protocol):
    """What a training needs of the recording that it belongs to: see `program.recording`."""

    see: Callable[[str], None]

    def run(self, name: str) -> WatchedRun: ...

    def set_aside(self, run: WatchedRun) -> None: ...

    def counts(self, run: WatchedRun) -> None: ...

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
        self.name = name
        self._recording = recording
        self._make_structure = structure
        self._structure: Structure | None = None
        self._run = recording.run(name)
        self.protection = self._run.protection
        self._tracing: Tracing | None = None
        self._plans = 0
        self._is_lost = False
        self._again: Again | None = None
        self._usual = 0.0
        self._has_risen = False
        self._losses = MOST_LOST if self._run.options.settings.guarded else 0
        self._lock = threading.Lock()
        self._is_recording = False

    def claims_step(self) -> bool:
        """Whether the step that begins now is to be recorded. If so, `ends_step` must follow."""
        with self._lock:
            if self.protection.is_over or self._is_recording or not (self._run.is_due() or self._is_lost):
                return False
            self._is_lost = False
            self._begin()
            self._is_recording = not self.protection.is_over
            return self._is_recording

    def keep(self, again: Again, read: Run, fed: Mapping[str, Any]) -> None:
        """A step begins that is not recorded."""
        if self._losses:
            self._again = again
            again.keep(self._run.step, read, fed, is_urgent=self._has_risen)

    def saw(self, loss: float) -> None:
        """The program has seen a loss that is finite. Before a training breaks, it often rises."""
        self._has_risen = abs(loss) > RISEN * self._usual > 0.0
        self._usual += (abs(loss) - self._usual) * 0.1

    def lost(self, run: Run, state: Callable[[Plan], Any]) -> None:
        """The program has seen a loss that is not finite. The last step is recorded if its gradient was not finite: see
        `again`. Otherwise the next one is: programs also look at the loss before they train with a batch.

        Args:
            run: Runs tensors for the recorder.
            state: The values of the variables of a plan now.
        """
        if not self._losses:
            return
        self._losses -= 1
        again, last = self._again, self._run.step - 1
        self._is_lost = True
        if again is None or again.step != last:
            return
        after = state(again.plan)
        if all(np.all(np.isfinite(each)) for each in after.values()):
            return  # the last step was in order
        found = again.measured(run, after)
        self._again, self._losses = None, 0
        if found is not None:
            self._is_lost = False
            self.write(again.plan, found, last)

    def ends_step(self) -> None:
        """The recorded step is over, completed or not."""
        self._is_recording = False

    def completed(self, seconds: float, *, recorded: bool) -> None:
        """A step has run."""
        with self._lock:
            self._run.completed(seconds, recorded=recorded)
            if not self._is_aside:
                self._recording.counts(self._run)

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
        self._plans += 1
        settings = self._run.options.settings
        with feeding_kept(execution.graph):
            if self._structure is None:
                self._structure = self._make_structure()
            return Plan(
                self._structure,
                execution,
                updates,
                self._plans,
                with_tensors=settings.tensors == "all",
                keep_source=settings.source,
            )

    def write(self, plan: Plan, measurements: dict[str, Any], step: int | None = None) -> None:
        """Writes a step, by default the one that has run last and is not counted yet."""
        if self._tracing is None:
            self._tracing = Tracing(self._run.recorder(self.name))
        if plan.trace.index not in self._tracing.indices:
            self._tracing.finished(plan.trace, None)
        self._run.write(measurements, self._tracing, step=step)

    def write_structure(self, graph: Any) -> None:
        """Writes the structure of its graph alone."""
        self._begin()
        trace = self.plan(Execution(graph), ()).trace
        self._run.recorder(self.name).add_failed_trace(trace)

    def flush(self) -> None:
        """Makes everything recorded so far readable."""
        self._run.flush()

    def discard(self) -> None:
        """Records nothing any more, and gives up what was recorded."""
        self._run.discard()

    def _begin(self) -> None:
        self._run.begin()
        if self._is_aside:
            self._recording.set_aside(self._run)

    @property
    def _is_aside(self) -> bool:
        """Whether it seems to be no training so far."""
        return self.is_evaluated and not (self._of_variables and self._run.step >= SEVERAL)
