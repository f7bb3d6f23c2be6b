"""Where a custom gradient differs from the derivative of its function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from tb_gradflow.analyse.evidence.discrete import ROUNDING, SAMPLING, SEARCHING
from tb_gradflow.record.schema import GradientCheck, GradientSample, InputCheck

# With one of these inside a function, its custom gradient is meant to differ from the derivative.
_ON_PURPOSE = ROUNDING | SEARCHING | SAMPLING | {"Sign", "StopGradient", "PreventGradient"}

# A gradient that is closer than this, for each element and for the whole tensor, is an intended approximation.
_TOLERANCE = 0.05

# The two references; differences in float32 keep about two digits.
_WITNESSES_AGREE = 0.05


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with one input's gradient.

    Attributes:
        check: The custom gradient.
        input: The input.
        sample: The element that shows it best; None if the shape is wrong.
    """

    check: GradientCheck
    input: InputCheck
    sample: GradientSample | None

    @property
    def is_backwards(self) -> bool:
        """Whether it points away from the derivative, or is zero."""
        return self.input.ratio is not None and self.input.ratio <= 0


def flaws_of(check: GradientCheck) -> Iterator[Flaw]:
    """The inputs whose gradient is wrong."""
    for each in check.inputs:
        if has_wrong_shape(each):
            yield Flaw(check, each, None)
        elif not is_meant(check) and (each.error_share is None or each.error_share > _TOLERANCE):
            wrong = [sample for sample in each.samples if _is_wrong(sample)]
            if wrong:
                yield Flaw(check, each, max(wrong, key=_distance))


def are_swapped(check: GradientCheck) -> bool:
    """Whether two inputs get each other's gradient, at every element for which both are known."""
    known = [{sample.index: sample for sample in each.samples} for each in check.inputs]
    return any(
        bool(one.keys() & other.keys())
        and one != other
        and all(
            _is_near(one[at].returned, other[at].derivative) and _is_near(other[at].returned, one[at].derivative)
            for at in one.keys() & other.keys()
        )
        for one, other in combinations(known, 2)
    )


def _is_near(returned: float | None, derivative: float) -> bool:
    return returned is not None and abs(returned - derivative) <= _WITNESSES_AGREE * abs(derivative)


def has_wrong_shape(checked: InputCheck) -> bool:
    """Whether the returned shape cannot be that of the input, whatever its unknown sizes are."""
    wanted, found = checked.shape, checked.returned_shape
    if wanted is None or found is None:
        return False
    sizes = zip(wanted, found, strict=False)
    return len(wanted) != len(found) or any(-1 not in pair and pair[0] != pair[1] for pair in sizes)


def is_meant(check: GradientCheck) -> bool:
    """Whether it is of a kind that differs from the derivative on purpose."""
    return check.identity or check.response not in ("linear", "constant") or not _ON_PURPOSE.isdisjoint(check.forward)


def _is_wrong(sample: GradientSample) -> bool:
    # Where the function is flat, a gradient other than zero is intended.
    if sample.derivative == 0 or sample.returned is None:
        return False
    size = max(abs(sample.returned), abs(sample.derivative))
    agreed = sample.automatic is None or abs(sample.automatic - sample.derivative) <= _WITNESSES_AGREE * size
    return agreed and _distance(sample) > _TOLERANCE * size


def _distance(sample: GradientSample) -> float:
    return abs((sample.returned or 0.0) - sample.derivative)
