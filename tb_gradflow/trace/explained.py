"""What `explain` found, whichever way it looked."""

from __future__ import annotations

import time
from dataclasses import dataclass

import keras
import tensorflow as tf

from tb_gradflow.record.schema import FORMAT, Session, StepRecord, Trace
from tb_gradflow.version import VERSION


@dataclass(frozen=True, slots=True)
class Explained:
    """What one step showed.

    Attributes:
        session: As in a log.
        trace: The step's structure.
        record: The step's numbers; null if it was not complete, or nothing could be measured.
    """

    session: Session
    trace: Trace
    record: StepRecord | None


def session_of(name: str) -> Session:
    """A session of its own for what is called `name`."""
    return Session(
        format=FORMAT,
        id=f"{time.time_ns() // 1_000_000:013d}",
        tool=VERSION,
        tensorflow=tf.__version__,
        keras=keras.__version__,
        model=name,
        expected=(),
    )
