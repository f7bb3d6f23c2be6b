"""The result of `explain`, for every kind of step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.record.report import Diagnosis, ExampleGradients
from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS, MetricTrial, Session, StepRecord, Trace
from tb_gradflow.trace.experiments.training import Training


@dataclass(frozen=True, slots=True)
class Explained:
    """The result of one step.

    Attributes:
        session: As in a log.
        trace: The step's structure.
        record: The step's statistics; None if it was not complete, or if nothing could be measured.
        eager: Whether the step ran eagerly.
        examples: The gradient of each row of the batch; None if it was not requested.
        training: What can train the step; None if it was not requested, or if the step ran eagerly.
        raised: The error that it raises after it has taken a gradient; empty if none.
        metrics: Returns what the accuracies of the model say; none if it is not known which these are.
    """

    session: Session
    trace: Trace
    record: StepRecord | None
    eager: bool = False
    examples: ExampleGradients | None = None
    training: Training | None = None
    raised: str = ""
    metrics: Callable[[], tuple[MetricTrial, ...]] = tuple

    def diagnosis(self) -> Diagnosis:
        """What is wrong with the step, before any fix is tried."""
        record = self.record
        if record is None:
            return diagnose(self.trace, self.session, None, None, (), -1)
        gradients = np.frombuffer(record.gradients, "<f4").reshape(-1, len(GRADIENT_STATISTICS))
        norms = np.frombuffer(record.variables, "<f4").reshape(-1, len(VARIABLE_STATISTICS))
        recorded = (self.trace, self.session, gradients, norms, record.losses, record.step)
        return diagnose(*recorded, values=record.values)
