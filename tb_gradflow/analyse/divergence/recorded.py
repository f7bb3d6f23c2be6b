"""One recorded step of a run, with everything that two runs are compared by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_gradflow.record.schema import Session, Trace

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """The statistics of one step.

    Attributes:
        step: Optimizer step, from zero.
        session: How it was recorded.
        trace: The structure of the step.
        losses: The value of each target.
        gradients: `[rows, len(GRADIENT_STATISTICS)]`.
        variables: `[variables, len(VARIABLE_STATISTICS)]`.
        before: `[variables, 2]`: the norm and the sum of each variable's elements before the step; NaN if not known.
    """

    step: int
    session: Session
    trace: Trace
    losses: tuple[float, ...]
    gradients: Floats
    variables: Floats
    before: Floats
