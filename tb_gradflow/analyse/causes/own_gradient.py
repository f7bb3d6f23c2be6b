"""Gradients that the user wrote and that are not the derivative.

Blamed is only what two witnesses agree on: TensorFlow's own derivative of the forward computation and central
differences of it. What people do on purpose stays quiet: straight-through estimators (the derivative is zero, or an op
inside has none), gradient reversal and scaling (the forward pass changes nothing), clipping (the answer is not in
proportion to what arrives).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from tb_gradflow.analyse.causes.no_derivative import ROUNDING, SAMPLING, SEARCHING
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.step.measured import is_zero
from tb_gradflow.record.report import Severity
from tb_gradflow.record.schema import GradientCheck, GradientSample, InputCheck

# Whoever puts one of these into a function with a gradient of its own wants another gradient than the derivative.
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
        sample: The element that shows it best; null where the shape is what is wrong.
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


def own_gradient_differs(suspect: Suspect) -> Verdict | None:
    """On the variable's way to the loss stands a custom gradient that is not the derivative."""
    for check in suspect.topology.trace.gradient_checks:
        for flaw in flaws_of(check):
            if _passes(suspect, flaw):
                severe = flaw.is_backwards or flaw.sample is None or check.response == "constant"
                return _verdict("error" if severe else "warning", check)
    return None


def own_gradient_is_zero(suspect: Suspect) -> Verdict | None:
    """The custom gradient itself returns zeros. One that leaves the value as it is may be a gate that is closed."""
    check = _check_at(suspect)
    if check is None:
        return None
    return _verdict("warning" if check.identity else "error", check)


def own_gradient_gives_zero(suspect: Suspect) -> Verdict | None:
    """A function with a gradient of its own uses the variable: whatever is computed inside, loops included, what comes
    back is what that gradient returns for it. Said where nothing else leads to the loss, and a gradient arrives."""
    topology, target = suspect.topology, suspect.target
    if target < 0:
        return None
    hops = topology.gradient(target).hops
    readers = [reader for reader in topology.readers[suspect.state.variable] if hops[reader] >= 0]
    users = {user for reader in readers for user in topology.onward(reader) if hops[user] >= 0}
    for check in topology.trace.gradient_checks:
        if users == {check.op} and check.response == "unknown" and _arrives_behind(suspect, check.op):
            return _verdict("error", check)
    return None


def _arrives_behind(suspect: Suspect, op: int) -> bool:
    """Whether the first gradients that were recorded on the way from the loss to an op are there."""
    for place in walked([op], suspect.topology.onward):
        gradient = suspect.measured.of_op(suspect.target, place)
        if gradient is not None:
            return not is_zero(gradient)
    return False


def own_gradient_is_not_finite(suspect: Suspect) -> Verdict | None:
    """The custom gradient returns NaN or infinity, and the derivative is finite."""
    check = _check_at(suspect)
    samples = [sample for each in check.inputs for sample in each.samples] if check is not None else []
    finite = any(sample.returned is None for sample in samples)
    return _verdict("error", check) if check is not None and finite else None


def own_gradient_raises(suspect: Suspect) -> Verdict | None:
    """Asking for the gradient raises, and a custom gradient on the way is what does."""
    entry = suspect.state.entry
    if entry is None or entry.outcome != "error":
        return None
    for check in suspect.topology.trace.gradient_checks:
        refuses = check.problem.startswith("it raises") or any(map(has_wrong_shape, check.inputs))
        if refuses and any(_leads_to(suspect, edge.op) for edge in suspect.topology.trace.ops[check.op].inputs):
            return _verdict("error", check)
    return None


def _verdict(severity: Severity, check: GradientCheck) -> Verdict:
    return Verdict("custom_gradient_wrong", severity, check.op)


def _check_at(suspect: Suspect) -> GradientCheck | None:
    """The record of the suspect's own op, if that has a custom gradient."""
    return next((each for each in suspect.topology.trace.gradient_checks if each.op == suspect.culprit), None)


def _passes(suspect: Suspect, flaw: Flaw) -> bool:
    """Whether the variable's gradient comes through the flawed input."""
    topology, target = suspect.topology, suspect.target
    if target < 0 or topology.gradient(target).hops[flaw.check.op] < 0:
        return False
    edges = [edge for edge in topology.trace.ops[flaw.check.op].inputs if edge.input == flaw.input.input]
    return any(_leads_to(suspect, edge.op) for edge in edges)


def _leads_to(suspect: Suspect, op: int) -> bool:
    readers = suspect.topology.readers[suspect.state.variable]
    return op >= 0 and (op in readers or bool(suspect.topology.way_between(readers, op)))
