"""The step of a training by `fit`. Keras informs a callback about executions, which may be of several steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tb_gradflow.trace.fit.keras3 import Fitting


class StepCount:
    """Counts steps from Keras's notifications, and uses the optimizer's count where these are not enough.

    Attributes:
        now: Number of steps that have run, which is the index of the next one.
        per_execution: Number of steps of an execution, except the last one of an epoch.
    """

    def __init__(self) -> None:
        self.now = 0
        self.per_execution = 1
        self._fitting: Fitting | None = None
        self._begun: tuple[int, int] | None = None
        self._batch = 0
        self._runs = False

    def epoch_begins(self, fitting: Fitting | None) -> None:
        """Before the first execution of an epoch; None if the model is not recorded."""
        self._fitting, self._begun, self._runs = fitting, None, False
        if fitting is None:
            return
        self.per_execution = fitting.steps_per_execution
        iterations = fitting.iterations
        if self.per_execution > 1 and iterations is not None:
            self._begun = (self.now, iterations)

    def execution_begins(self, batch: int) -> None:
        """Keras's number of its first batch."""
        self._batch = batch
        self._runs = True

    def is_last(self, epoch: int, params: Mapping[str, Any] | None) -> bool:
        """Whether the execution that has begun is the last one of the fit, as far as Keras's `params` show it."""
        if not params or not params.get("steps") or not params.get("epochs"):
            return False
        return epoch + 1 >= int(params["epochs"]) and self._batch + self.per_execution >= int(params["steps"])

    def execution_ends(self, batch: int) -> None:
        """Keras's number of its last batch; before 3.11 it is that of the first one."""
        self._runs = False
        self.now += batch - self._batch + 1 if batch > self._batch else self.per_execution

    def correct(self) -> None:
        """The last execution of an epoch may run fewer than `steps_per_execution` steps, and Keras does not say so;
        before 3.7 it begins them and ends with an error, and so does an execution for which there are no batches left,
        if Keras does not know how many there are. The optimizer counts them; reading its count waits for the step."""
        if self._begun is None or self._fitting is None:
            return
        step, iterations = self._begun
        counted = step + (self._fitting.iterations or 0) - iterations
        # An optimizer that counts something else, such as one that is used twice in a step, is soon further away.
        if 1 - self.per_execution <= counted - self.now <= (self.per_execution if self._runs else 0):
            self.now = counted
