"""What to record of a step."""

from __future__ import annotations

import dataclasses

from tb_gradflow.trace.capture.collector import Tensors
from tb_gradflow.trace.custom_gradient_checks.step_checks import GradientChecks


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What to record of a step.

    Attributes:
        tensors: See the callback.
        source: Whether to keep the user's files and lines.
        checks: Where to keep what is needed to check custom gradients of an eager step; None if they are not checked.
        values: Whether to measure the forward pass too: in steps that run on copies.
        examples: Whether to also keep the rows of the batch in which something is not finite.
        terms: Whether to measure the gradient of each term of a loss.
        guarded: Whether to record the first step with a gradient that is not finite, whatever the cadence.
        each: Whether to record the first steps of each compiled function, whatever the cadence: one that is compiled
            later is another step, such as that of a second `fit` after `compile`.
    """

    tensors: Tensors = "all"
    source: bool = True
    checks: GradientChecks | None = None
    values: bool = False
    examples: bool = False
    terms: bool = False
    guarded: bool = False
    each: bool = False
