"""What differences say of a gradient, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_gradflow.gradcheck.differences import Differences, Probe
from tb_gradflow.gradcheck.probes import scales_of
from tb_gradflow.gradcheck.problem import Argument, Array
from tb_gradflow.gradcheck.report import StepError

# Gradients that differ by less, over the larger of both, are one. By machine epsilon: in float64 central differences
# are good to about its square root times a thousand, in float32 to some 1e-4 [seen: 6e-5 for a two-layer network], with
# a factor of a hundred in hand for functions that are less smooth.
_TOLERANCE = ((1e-10, 1e-5), (1e-5, 1e-2), (1.0, 0.1))

# Slopes smaller than this share of the argument's largest do not influence a descent.
NEGLIGIBLE = 1e-3

# A slope that three times its uncertainty may change by half is as good as unknown: a factor of two would not show.
_TELLING = 0.5

# A slope counts as visible if rounding is below this share of it.
_VISIBLE = 0.1

# The same of the argument's largest slope: single precision at its best step, 5e-3, gets there for slopes down to a
# seventieth of the value over the size of the element.
_VISIBLE_BESIDE = 0.03


@dataclass(frozen=True, eq=False)
class Comparison:
    """The comparison of one argument's gradient with its differences.

    Attributes:
        argument: The argument.
        found: Its differences, one for each direction.
        tolerance: Relative difference up to which gradients count as equal.
        beside: The largest slope of the gradient for any argument: a bias before a batch normalisation has a slope of
            zero, which rounding hides unless it is compared with the others.
    """

    argument: Argument
    found: Sequence[Differences]
    tolerance: float
    beside: float = 0.0

    def claimed(self, probe: Probe, gradient: Array | None = None) -> float:
        """The slope along a direction according to a gradient."""
        gradient = self.argument.gradient if gradient is None else gradient
        assert gradient is not None
        return float(np.sum(gradient * probe.direction))

    def agrees(self, each: Differences, gradient: Array | None = None) -> bool:
        """Whether a gradient is the slope along a direction where the function is smooth."""
        claimed = self.claimed(each.probe, gradient)
        size = max(abs(claimed), abs(each.slope), NEGLIGIBLE * self.largest)
        if abs(claimed - each.slope) <= self.tolerance * size + 3 * each.uncertainty:
            return True
        telling = max(_VISIBLE * abs(each.slope), _VISIBLE_BESIDE * self.largest)
        return bool(np.isfinite(claimed)) and each.allows(claimed, self.tolerance * size, telling)

    @property
    def by_element(self) -> bool:
        """Whether each element was moved by itself."""
        return len(self.found) == self.argument.point.size and all(each.probe.index is not None for each in self.found)

    @cached_property
    def largest(self) -> float:
        """The largest slope along any direction that has one."""
        return max((abs(each.slope) for each in self.found if each.is_smooth), default=0.0)

    @cached_property
    def smooth(self) -> list[Differences]:
        """The directions along which finite differences determine a slope."""
        return [each for each in self.found if each.is_smooth and self._is_telling(each)]

    @property
    def unknown(self) -> list[Differences]:
        """The directions of which finite differences say nothing."""
        return [each for each in self.found if not each.is_jump and not each.is_kink and each not in self.smooth]

    @property
    def rough(self) -> list[Differences]:
        """The directions with a kink or a jump."""
        return [each for each in self.found if each.is_kink or each.is_jump]

    def fits(self, gradient: Array) -> bool:
        """Whether a gradient agrees along all directions that determine a slope."""
        return bool(self.smooth) and all(self.agrees(each, gradient) for each in self.smooth)

    def _is_telling(self, each: Differences) -> bool:
        """Whether a wrong slope would show: one of the size that is claimed, or that the function has elsewhere."""
        claimed = 0.0 if self.argument.gradient is None else self._claimed_or_zero(each.probe)
        if each.is_constant and claimed == 0:
            return True
        size = max(abs(claimed), abs(each.slope), each.reach, NEGLIGIBLE * self.largest, NEGLIGIBLE * self.beside)
        return 3 * each.uncertainty <= _TELLING * size

    def _claimed_or_zero(self, probe: Probe) -> float:
        gradient = self.argument.gradient
        assert gradient is not None
        return self.claimed(probe) if gradient.shape == probe.direction.shape else 0.0

    @property
    def error(self) -> float:
        """Norm of the gradient less the slopes, over the larger of both norms."""
        yours = np.array([self.claimed(each.probe) for each in self.smooth])
        return relative(yours, np.array([each.slope for each in self.smooth]))

    @property
    def best_step(self) -> float | None:
        """The step, as the median over elements, at which the differences are surest; `None` if no step is good."""
        if not self.smooth:
            return None
        usual = float(np.median(np.log([each.steps[each.best] for each in self.smooth])))
        best = min(_common_steps(self.smooth), key=lambda step: abs(np.log(step) - usual))
        return best * float(np.median(scales_of(self.argument)))

    @property
    def step_errors(self) -> tuple[StepError, ...]:
        """How far the gradient is off the central difference at each step that was tried."""
        found, argument = self.smooth or self.found, self.argument
        if not found or argument.gradient is None or argument.gradient.shape != argument.point.shape:
            return ()
        yours = np.array([self.claimed(each.probe) for each in found])
        size = float(np.median(scales_of(argument)))
        told = []
        for step in _common_steps(found):
            there = np.array([each.at(each.steps.index(step)) for each in found])
            told.append(StepError(step * size, step, relative(yours, there)))
        return tuple(told)


def tolerance_for(resolution: float) -> float:
    """Relative difference up to which gradients are one, for arithmetic with this machine epsilon."""
    return next(each for limit, each in _TOLERANCE if resolution < limit)


def relative(yours: Array, right: Array) -> float:
    if not np.all(np.isfinite(right)):
        return float("inf")
    size = max(float(np.linalg.norm(yours)), float(np.linalg.norm(right)))
    return float(np.linalg.norm(yours - right)) / size if size else 0.0


def scale_of(probe: Probe) -> float:
    """The size of the one element that is moved; one for many."""
    return 1.0 if probe.index is None else float(np.abs(probe.direction).flat[probe.index])


def _common_steps(found: Sequence[Differences]) -> list[float]:
    """The steps that were tried along all directions."""
    return sorted(set[float](found[0].steps).intersection(*(each.steps for each in found)))
