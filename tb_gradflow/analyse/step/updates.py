"""How far a step moves each matrix, in parts of its size, and what decides that: learning rate, gradient, weight decay,
a clip."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from tb_gradflow.analyse.step.measured import UPDATE_NORM, WEIGHT_NORM, Measured
from tb_gradflow.analyse.step.movement import movement_of
from tb_gradflow.record.schema import CLIP_STATISTICS

USUAL = 1e-3
"""By which part of its size a step of a good length changes a weight (Karpathy, CS231n, "Ratio of weights:updates")."""

FAR = 100.0
"""Times as far, or as little, as is usual."""

PROPORTIONAL = frozenset({"SGD", "GradientDescentOptimizer", "MomentumOptimizer"})
"""Their updates are in proportion to the gradient; those of the others have about the size of the learning rate."""

_FALLEN = 1.1
"""A loss that was this many times larger has fallen a little at least."""

_STEPS = 20
"""After fewer steps, a loss says nothing."""

_BEFORE, _AFTER = (CLIP_STATISTICS.index(name) for name in ("before", "after"))

Part = Literal["rate", "gradient", "clip", "weights"]


@dataclass(frozen=True, slots=True)
class Update:
    """How a matrix is updated.

    Attributes:
        variable: Its index.
        share: By which part of its size the last recorded steps have changed it, in the median.
        steps: How many these are.
        optimizer: The index of its optimizer.
        rate: The learning rate.
        decay: By which part of its size weight decay alone shrinks it in a step.
        move: By how much this step has changed an element, as a root mean square.
        parts: What the length of the step is a product of, each for one element: the last one is one over the size of
            a weight. The gradient counts only if the optimizer's updates are in proportion to it.
    """

    variable: int
    share: float
    steps: int
    optimizer: int
    rate: float
    decay: float
    move: float
    parts: Mapping[Part, float]

    @property
    def size(self) -> float:
        """Of an element, as a root mean square."""
        return 1.0 / self.parts["weights"]


def has_hardly_fallen(measured: Measured, target: int) -> bool:
    """Whether the loss of a training is about what it was in the first recorded step, or more."""
    known = not measured.alone and measured.step >= _STEPS and 0 <= target < len(measured.losses)
    return known and not measured.is_small(target) and measured.shrunk_by(target) < _FALLEN


def updates_of(measured: Measured) -> Sequence[Update]:
    """Those of the trainable matrices whose update is known."""
    return measured.once("updates", lambda: list(filter(None, map(_of(measured), measured.moves))))


def _of(measured: Measured) -> Callable[[int], Update | None]:
    trace, numbers = measured.topology.trace, measured.variables
    left = _left(measured)

    def update(variable: int) -> Update | None:
        moved, shape = movement_of(measured, variable), trace.variables[variable].shape
        if numbers is None or moved is None or moved.rate is None or len(shape) < 2 or min(shape) < 1:
            return None
        shares, size = measured.moves[variable], math.prod(shape)
        gradients = [measured.of_variable(each) for each in measured.topology.entries_of(variable)]
        norms = [each.norm for each in gradients if each is not None and each.norm > 0]
        weight = float(numbers[variable, WEIGHT_NORM])
        if len(norms) != 1 or not weight > 0 or not moved.rate > 0 or moved.optimizer.accumulates > 1:
            return None
        parts: dict[Part, float] = {"rate": moved.rate, "weights": math.sqrt(size) / weight}
        if moved.optimizer.type in PROPORTIONAL:
            parts |= {"gradient": norms[0] / math.sqrt(size), "clip": left.get(variable, 1.0)}
        return Update(
            variable,
            median(shares),
            len(shares),
            moved.known.optimizer,
            moved.rate,
            moved.rate * moved.known.decay,
            float(numbers[variable, UPDATE_NORM]) / math.sqrt(size),
            parts,
        )

    return update


def _left(measured: Measured) -> dict[int, float]:
    """What clips leave of the gradient of each variable in this step."""
    found: dict[int, float] = {}
    if measured.gradients is None:
        return found
    for clip in measured.topology.trace.clips:
        before, after = measured.gradients[clip.row, _BEFORE].item(), measured.gradients[clip.row, _AFTER].item()
        if before > 0 and after > 0:
            found |= {variable: found.get(variable, 1.0) * after / before for variable in clip.variables}
    return found
