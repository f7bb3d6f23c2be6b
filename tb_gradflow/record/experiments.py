"""Measurements of a step that ran once more, on copies of its variables, with one thing changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SPACINGS = 16 * 2.0**-23
"""Rounding in float32: sums of a batch are equal to a few spacings of numbers."""

_TIMES_NOISE = 10.0


@dataclass(frozen=True, slots=True)
class Influence:
    """A variable was moved, by larger and larger amounts and in several directions, until the loss was another one.

    Attributes:
        target: Index in `Trace.targets`.
        variable: Index in `Trace.variables`.
        size: The largest magnitude among its elements.
        amount: By how much it was moved last: the largest change of an element.
        before: The loss before.
        again: The loss when the step ran a second time with nothing changed: another one if random numbers cannot be
            repeated.
        after: The loss when it was moved.
        still: The largest smaller amount to which the loss did not react; zero if there was none.
    """

    target: int
    variable: int
    size: float
    amount: float
    before: float
    again: float
    after: float
    still: float

    @property
    def reacts(self) -> bool:
        """Whether the loss depends on the variable, beyond rounding and noise."""
        limit = _TIMES_NOISE * abs(self.again - self.before) + SPACINGS * abs(self.before)
        return abs(self.after - self.before) > limit


@dataclass(frozen=True, slots=True)
class LineSearch:
    """The loss of a step's batch along the line from the weights before the step to those after it.

    Attributes:
        target: Index in `Trace.targets`.
        before: The loss before the step.
        again: The same, computed a second time: another one if random numbers cannot be repeated.
        factors: By which the step's update was multiplied; 1 is the step itself.
        losses: The loss after each; null if it is not finite, or was not computed.
        rate: The learning rate of the step; null if it is not known, or not the same for all variables.
    """

    target: int
    before: float
    again: float
    factors: tuple[float, ...]
    losses: tuple[float | None, ...]
    rate: float | None = None

    @property
    def noise(self) -> float:
        """Smaller differences between losses mean nothing."""
        return _TIMES_NOISE * abs(self.again - self.before) + SPACINGS * abs(self.before)

    def after(self, factor: float) -> float:
        """The loss after a step that is so many times as long; NaN if it is not known, or not finite."""
        known = dict(zip(self.factors, self.losses, strict=True)).get(factor)
        return float("nan") if known is None else known

    @property
    def better(self) -> float | None:
        """If the step is too long: the largest part of it that would lower the loss. A step is too long if it raises
        the loss of its own batch by a tenth, and a part of it lowers it."""
        parts = [each for each in self.factors if each < 1 and self.after(each) < self.before - self.noise]
        is_worse = not self.after(1.0) <= self.before + 0.1 * abs(self.before)
        return max(parts) if parts and is_worse else None


@dataclass(frozen=True, slots=True)
class Reaction:
    """What goes into an op was moved in the same way, until the op's output was another one. Other ops that use the
    same tensor were given what they had in the step.

    Attributes:
        op: Index in `Trace.ops`.
        target: Index in `Trace.targets`, of a loss that depends on the op.
        size: The largest magnitude among the elements of the input.
        amount: By how much it was moved last: the largest change of an element.
        changed: The share of the elements of the op's outputs that were others then, beyond rounding.
        change: The largest change of an element.
        before: The loss before.
        after: The loss when the input was moved.
        still: The largest smaller amount to which no output reacted; zero if there was none.
    """

    op: int
    target: int
    size: float
    amount: float
    changed: float
    change: float
    before: float
    after: float
    still: float

    @property
    def reacts(self) -> bool:
        """Whether the op's output depends on the input."""
        return self.changed > 0


@dataclass(frozen=True, slots=True)
class ChangedGradient:
    """A variable's gradient before and after something was changed.

    Attributes:
        variable: Index in `Trace.variables`.
        before: Its largest magnitude, over the finite elements.
        was_broken: Number of elements that were not finite.
        after: The largest magnitude after the change.
        broken: Number of elements that are not finite then.
    """

    variable: int
    before: float
    was_broken: int
    after: float
    broken: int


@dataclass(frozen=True, slots=True)
class Intervention:
    """The step, with its gradients, ran once more with one thing changed: a tensor that goes into an op, for all ops
    that use it, or rows of the batch.

    Attributes:
        target: Index in `Trace.targets`.
        op: Index in `Trace.ops`; -1 if rows were changed.
        input: Which of its inputs the tensor is; -1 likewise.
        factor: By which each element of the tensor was multiplied.
        added: What was added to it then.
        rows: The rows that were replaced by copies of another one; none if a tensor was changed.
        copied: That one; -1 if a tensor was changed.
        before: The loss without the change; null if it is not finite.
        after: The loss with it; null if it is not finite.
        gradients: Of the variables in question.
    """

    target: int
    op: int
    input: int
    factor: float
    added: float
    rows: tuple[int, ...]
    copied: int
    before: float | None
    after: float | None
    gradients: tuple[ChangedGradient, ...]


Along = Literal["gradient", "random"]


@dataclass(frozen=True, slots=True)
class Slope:
    """A variable was moved a little along a direction, and the loss computed again: does its gradient predict that?

    Attributes:
        target: Index in `Trace.targets`.
        variable: Index in `Trace.variables`.
        along: gradient: along its gradient. random: along random numbers.
        size: The largest magnitude among its elements.
        amount: The largest change of an element.
        before: The loss before.
        again: The same, computed a second time.
        ahead: The loss when it was moved.
        behind: The loss when it was moved the other way.
        predicted: Half the difference of these two, according to the gradient.
    """

    target: int
    variable: int
    along: Along
    size: float
    amount: float
    before: float
    again: float
    ahead: float
    behind: float
    predicted: float

    @property
    def change(self) -> float:
        """Half the difference of the losses ahead and behind."""
        return (self.ahead - self.behind) / 2

    @property
    def noise(self) -> float:
        """Smaller changes mean nothing."""
        return _TIMES_NOISE * abs(self.again - self.before) + SPACINGS * abs(self.before)


SpikeOf = Literal["loss", "gradient"]

Changed = Literal["nothing", "weights", "batch", "rows"]
"""What was different when a step that was not usual ran again: nothing; it had the weights of an earlier step; it had
that step's batch; or some rows of its batch were replaced by a copy of another one."""


@dataclass(frozen=True, slots=True)
class SpikeTrial:
    """The step ran again.

    Attributes:
        changed: What was different.
        loss: The loss; null if it is not finite.
        norm: The norm of the gradient in the unit of `Spike.norm`; null if it is not finite, or not known.
        rows: The rows that were replaced; none if it was something else.
        copied: By which row; -1 likewise.
    """

    changed: Changed
    loss: float | None
    norm: float | None
    rows: tuple[int, ...] = ()
    copied: int = -1


@dataclass(frozen=True, slots=True)
class MovedWeights:
    """How far a variable has gone between an earlier step and one that was not usual.

    Attributes:
        variable: Index in `Trace.variables`.
        size: Its L2 norm at first.
        change: The L2 norm of the difference.
        largest: The largest change of an element.
        count: Number of elements.
    """

    variable: int
    size: float
    change: float
    largest: float
    count: int


@dataclass(frozen=True, slots=True)
class Spike:
    """A step whose loss or gradient was far above what was usual until then.

    Attributes:
        target: Index in `Trace.targets`.
        of: Which of both, the loss if it is both.
        loss: The loss.
        usual_loss: The median of its magnitude in the steps before.
        norm: The norm of the gradients that the monitor looks at in every step, a part of all.
        usual_norm: The median of that.
        highest: The largest value of what `of` says in these steps.
        limit: Above which that was not usual.
        steps: Number of steps that this is known from.
        losses: The losses of the last steps before it, oldest first.
        norms: The norms likewise.
        draws: Whether the step draws random numbers that were others when it ran again.
        earlier: How many calls before it the weights and the batch of an earlier step were kept; 0 if none were.
        trials: What became of it when something was different.
        moved: How far variables have gone since then; none without such a step.
        rates: The value that a learning rate had then and has now; none if that is not a variable of the step.
    """

    target: int
    of: SpikeOf
    loss: float
    usual_loss: float
    norm: float
    usual_norm: float
    highest: float
    limit: float
    steps: int
    losses: tuple[float, ...]
    norms: tuple[float, ...]
    draws: bool = False
    earlier: int = 0
    trials: tuple[SpikeTrial, ...] = ()
    moved: tuple[MovedWeights, ...] = ()
    rates: tuple[float, ...] = ()
