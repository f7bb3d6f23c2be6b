"""The cost of recording a training, as measured by the recorder."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one session, from its first step until it was written. Times are in seconds.

    Attributes:
        steps: Executions of the training function.
        recorded: Those of them that were recorded.
        seconds: Their time, without the first execution of each kind, in which TensorFlow compiles it.
        extra: The time by which recorded executions exceed the median of the others, plus the callback's time around
            the others. The cost of the non-finite monitor within the others is not included.
        set_up: The time by which the first recorded execution exceeds later recorded ones.
    """

    steps: int
    recorded: int
    seconds: float
    extra: float
    set_up: float

    @property
    def share(self) -> float:
        """The share of the training's time that recording took, without set-up; 0 if nothing is known."""
        return self.extra / self.seconds if self.seconds > 0 else 0.0
