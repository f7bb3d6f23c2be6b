"""What recording has cost a training, as the recorder measures it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one session, from its first step to the moment it was written. Times are in seconds.

    Attributes:
        steps: Executions of the training function.
        recorded: Those of them that were recorded.
        seconds: Their time, without the first execution of either kind, in which TensorFlow compiles it.
        extra: What the recorded ones took longer than the median of the others, and what the callback did around the
            others. What a guard within these takes is in neither.
        set_up: What the first recorded one took longer than a recorded one takes.
    """

    steps: int
    recorded: int
    seconds: float
    extra: float
    set_up: float

    @property
    def share(self) -> float:
        """The part of the training's time that recording took, set-up apart; 0 if nothing is known."""
        return self.extra / self.seconds if self.seconds > 0 else 0.0
