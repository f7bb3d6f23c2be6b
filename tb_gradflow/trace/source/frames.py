"""Tracebacks: the call stack under which an op was created."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = str(Path(os.path.abspath(__file__)).parents[2]) + os.sep
"""The folder of tb_gradflow's own code."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a traceback."""

    file: str
    line: int
    function: str


def frames_of(stack: Iterable[Any] | None) -> list[Frame]:
    """The frames of a TensorFlow or Python stack summary, outermost first."""
    # TensorFlow keeps no stack for some ops (for example in a model with an LSTM and Keras's CTC loss).
    return [Frame(frame.filename, frame.lineno or 0, frame.name) for frame in stack or ()]


def stack_now() -> list[Frame]:
    """The frames of this thread, outermost first, without the caller's frame."""
    frames = []
    frame: Any = sys._getframe(2)
    while frame is not None:
        frames.append(Frame(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return frames[::-1]
