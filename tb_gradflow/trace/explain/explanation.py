"""The result of `explain`, for every kind of step."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tb_gradflow.record.report import ExampleGradients
from tb_gradflow.record.schema import FORMAT, Session, StepRecord, Trace
from tb_gradflow.trace.step.forward_values import step_values
from tb_gradflow.version import VERSION


@dataclass(frozen=True, slots=True)
class Explained:
    """The result of one step.

    Attributes:
        session: As in a log.
        trace: The step's structure.
        record: The step's statistics; None if it was not complete, or if nothing could be measured.
        eager: Whether the step ran eagerly.
        examples: The gradient of each row of the batch; None if it was not requested.
    """

    session: Session
    trace: Trace
    record: StepRecord | None
    eager: bool = False
    examples: ExampleGradients | None = None


def session_of(name: str) -> Session:
    """A new session for the model or function `name`."""
    return Session(
        format=FORMAT,
        id=f"{time.time_ns() // 1_000_000:013d}",
        tool=VERSION,
        tensorflow=tf.__version__,
        keras=keras.__version__,
        model=name,
        expected=(),
    )


def record_of(values: dict[str, Any]) -> StepRecord:
    """The statistics of the step."""
    return StepRecord(
        trace=int(values["trace"]),
        step=0,
        wall_time=time.time(),
        losses=tuple(float(value) for value in values["losses"]),
        gradients=np.ascontiguousarray(values["gradients"], "<f4").tobytes(),
        variables=np.ascontiguousarray(values["variables"], "<f4").tobytes(),
        values=step_values(values, 0),
    )
