"""The result of `explain`, for every kind of step."""

from __future__ import annotations

from dataclasses import dataclass

from tb_gradflow.record.report import ExampleGradients
from tb_gradflow.record.schema import Session, StepRecord, Trace
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
    """

    session: Session
    trace: Trace
    record: StepRecord | None
    eager: bool = False
    examples: ExampleGradients | None = None
    training: Training | None = None
