"""The function has a kink or a jump at the point."""

from __future__ import annotations

from collections.abc import Sequence

from tb_gradflow.gradcheck.comparison import NEGLIGIBLE, Comparison, scale_of
from tb_gradflow.gradcheck.differences import Differences
from tb_gradflow.gradcheck.report import ArgumentCheck
from tb_gradflow.gradcheck.verdicts.words import places, told


def is_between(comparison: Comparison, each: Differences) -> bool:
    """Whether the gradient at a kink is the slope of one side, or between both."""
    if each.is_jump:
        return False
    left, right = sorted(each.sides)
    slack = 10 * comparison.tolerance * max(abs(left), abs(right), NEGLIGIBLE * comparison.largest)
    return left - slack <= comparison.claimed(each.probe) <= right + slack


def at_a_kink(comparison: Comparison, outside: Sequence[Differences]) -> ArgumentCheck:
    argument, rough = comparison.argument, comparison.rough
    single = [each for each in outside or rough if each.probe.index is not None]
    first = (single or outside or rough)[0]
    scale = scale_of(first.probe)
    rest = len(comparison.found) - len(rough)
    others = f" The other {rest} agree." if rest and not comparison.unknown else ""
    if first.is_jump:
        height = first.jump
        message = (
            f"The function jumps here{places(rough)}, by {height:.3g}: there is no derivative, and a central "
            f"difference gives {height:.3g} / 2h, {height / 2e-3:.3g} at h = 0.001. Compare at a point next to the "
            f"jump.{others}"
        )
        return told(argument, "kink", message, not outside, comparison)
    left, right = (side / scale for side in first.sides)
    claimed = comparison.claimed(first.probe) / scale
    verdict = (
        "is one of the two or lies between them, which is a valid choice"
        if not outside
        else "is neither of the two, nor between them"
    )
    message = (
        f"The function has a kink here{places(rough)}: its slope is {left:.4g} on the left and {right:.4g} on the "
        f"right, and a central difference gives {(left + right) / 2:.4g}. The gradient, {claimed:.4g}, "
        f"{verdict}.{others}"
    )
    return told(argument, "kink", message, not outside, comparison)
