"""Where a custom gradient differs from the derivative of its function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from tb_gradflow.analyse.evidence.discrete import ROUNDING, SAMPLING, SEARCHING
from tb_gradflow.record.schema import GradientCheck, GradientSample, InputCheck

# Whoever puts one of these into a function with a custom gradient wants another gradient than the derivative.
_ON_PURPOSE = ROUNDING | SEARCHING | SAMPLING | {"Sign", "StopGradient", "PreventGradient"}

# A gradient that is nearer than this, element by element and over the whole tensor, is an approximation, and meant.
_TOLERANCE = 0.05

# The two witnesses; differences in float32 keep about two digits.
_WITNESSES_AGREE = 0.05


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with one input's gradient.

    Attributes:
        check: The custom gradient.
        input: The input.
        sample: The element that shows it best; None where the shape is what is wrong.
    """

    check: GradientCheck
    input: InputCheck
    sample: GradientSample | None

    @property
    def is_backwards(self) -> bool:
        """Whether it leads away from the derivative, or nowhere."""
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
    """Whether two inputs get each other's gradient, at every element that both are known at."""
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
    """Whether what is returned cannot be a gradient of the input, whatever is unknown of its shape."""
    wanted, found = checked.shape, checked.returned_shape
    if wanted is None or found is None:
        return False
    sizes = zip(wanted, found, strict=False)
    return len(wanted) != len(found) or any(-1 not in pair and pair[0] != pair[1] for pair in sizes)


def is_meant(check: GradientCheck) -> bool:
    """Whether it is of a kind that is another gradient than the derivative on purpose."""
    return check.identity or check.response not in ("linear", "constant") or not _ON_PURPOSE.isdisjoint(check.forward)


def _is_wrong(sample: GradientSample) -> bool:
    # Where the function is flat, a gradient other than zero lets something through, and is meant to.
    if sample.derivative == 0 or sample.returned is None:
        return False
    size = max(abs(sample.returned), abs(sample.derivative))
    agreed = sample.automatic is None or abs(sample.automatic - sample.derivative) <= _WITNESSES_AGREE * size
    return agreed and _distance(sample) > _TOLERANCE * size


def _distance(sample: GradientSample) -> float:
    return abs((sample.returned or 0.0) - sample.derivative)
