"""The functions that are made from one that takes gradients, and which of them runs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from tb_gradflow.trace.engine.siblings import Added, Edit, Sibling
from tb_gradflow.trace.engine.switches import Switch
from tb_gradflow.trace.experiments.answers import Questions
from tb_gradflow.trace.nonfinite.guard import Guard
from tb_gradflow.trace.observed.experiments import Experiments
from tb_gradflow.trace.protection.substitutes import Run
from tb_gradflow.trace.step.measurements import Measurements
from tb_gradflow.trace.step.replicas import OfReplicas

_EXTRA = 0.25
"""The part of a recorded step's time that a plain one would not take; see `benchmarks`."""


Told = Callable[[], contextlib.AbstractContextManager[None]]


class Forms:
    """Those of one function.

    While the recorded form runs, TensorFlow need not compile another one, which takes longer than hundreds of steps. So
    it runs every step until that has taken, in addition, as much time as the other one will take to be compiled: then
    both together cost at most twice what the better choice would have cost.

    Args:
        function: The user's `ConcreteFunction`.
        switch: Its switch.
        measurements: What is measured in recorded steps.
        told: Returns the context in which the recorded form first runs.
        questions: The variables of the training that are moved.
        guarded: Whether the gradients of all steps are checked.

    Attributes:
        recorded: The recorded form.
        measurements: See above.
        guard: Notices gradients that are not finite; `None` if nobody does.
        experiments: Tries out what is in question; `None` where that cannot be done.
        is_rented: Whether the last unrecorded step ran in the recorded form.
    """

    def __init__(
        self,
        function: Any,
        switch: Switch,
        measurements: Measurements | OfReplicas,
        told: Told,
        questions: Questions,
        *,
        guarded: bool,
    ) -> None:
        self._function = function._inference_function
        self.guard = Guard(self._function, measurements.calls) if guarded else None
        self._edits: list[Edit] = [switch.draws, *(self.guard.edits if self.guard else [])]
        own = measurements.additions
        self.recorded = Sibling(self._function, [*self._edits, Added(own)], in_order=[each.of for each in own])
        self.measurements = measurements
        self.experiments: Experiments | None = None
        if self.guard is not None and isinstance(measurements, Measurements):
            self.experiments = Experiments(self.guard.units, measurements, questions)
        self.is_rented = False
        self._switch = switch
        self._told = told
        self._guarded: Sibling | None = None
        self._rent = 0.0
        self._price = 0.0
        if switch.draws.unshared:
            switch.stay_with(self.recorded)

    def record(self, run: Run, args: Sequence[Any]) -> None:
        """Runs a step that is recorded."""
        self._begins(args)
        self.measurements.begin()
        if self.experiments is not None:
            self.experiments.begin()
        self._timed(run, args)

    def run(self, run: Run, args: Sequence[Any]) -> None:
        """Runs another one."""
        self._begins(args)
        self.is_rented = bool(self._switch.draws.unshared) or self._rent < self._price
        if self.is_rented:
            self._timed(run, args)
        elif self.guard is None or self.guard.fault is not None:
            run.of(self._switch.plain, args)
        else:
            if self._guarded is None:
                self._guarded = Sibling(self._function, self._edits)
            run.of(self._guarded, args)

    def is_own(self, error: BaseException) -> bool:
        """Whether something that they do in addition to the user's function has raised an error."""
        return self.recorded.is_own(error) or (self._guarded is not None and self._guarded.is_own(error))

    def _begins(self, args: Sequence[Any]) -> None:
        if self.guard is not None:
            self.guard.begins(args)

    def _timed(self, run: Run, args: Sequence[Any]) -> None:
        began = time.perf_counter()
        with contextlib.nullcontext() if self._price else self._told():
            run.of(self.recorded, args)
        seconds = time.perf_counter() - began
        if not self._price:  # TensorFlow has compiled it
            self._price = seconds
        else:
            self._rent += _EXTRA * seconds
