"""Gradients that fade or grow between the loss and a variable, measured along the way from the loss."""

from __future__ import annotations

from tb_gradflow.analyse.course import Course
from tb_gradflow.analyse.evidence import Suspect, Verdict

# One op that alone takes this many orders of magnitude is no matter of depth.
_SINGLE_DECADES = 4.0

LOCAL_FADING = {
    "Sigmoid": "saturation_sigmoid",
    "Tanh": "saturation_sigmoid",
    "Softmax": "saturation_softmax",
    "LogSoftmax": "saturation_softmax",
}


def course_of(suspect: Suspect) -> Course:
    """How the gradient's size changes between the loss and the variable; empty if it was not measured."""
    gradient = suspect.topology.gradient(suspect.target)
    readers = [op for op in suspect.topology.readers[suspect.state.variable] if gradient.onward[op] >= 0]
    report = suspect.state.gradient
    if not readers or report is None or not report.max_abs:
        return {}
    nearest = min(readers, key=lambda op: gradient.hops[op])
    return suspect.measured.courses(suspect.target).to_variable(gradient.onward[nearest], report.max_abs)


def local_saturation(suspect: Suspect) -> Verdict | None:
    """One squashing function alone takes most: it is saturated, and depth has no part in it."""
    course = course_of(suspect)
    most = max((share.most for share in course.values()), default=(0.0, -1))
    if most[0] < _SINGLE_DECADES or suspect.type_of(most[1]) not in LOCAL_FADING:
        return None
    return Verdict(LOCAL_FADING[suspect.type_of(most[1])], "warning", most[1])


def vanishing_depth(suspect: Suspect) -> Verdict | None:
    """Many ops that each take a little. The op named is the one that takes most, of the kind that takes most."""
    worst = max(course_of(suspect).values(), key=lambda share: share.total, default=None)
    return Verdict("vanishing_depth", "warning", worst.most[1] if worst is not None else suspect.culprit)


def normalise_zero_vector(suspect: Suspect) -> Verdict | None:
    """`l2_normalize` of a vector of zeros multiplies by one over the root of its epsilon."""
    growth, place = min((share.least for share in course_of(suspect).values()), default=(0.0, -1))
    if growth > -_SINGLE_DECADES:
        return None
    op = suspect.topology.trace.ops[place]
    by_root = any(suspect.type_of(edge.op) == "Rsqrt" for edge in op.inputs if edge.op >= 0)
    normalises = op.type == "Rsqrt" or by_root or "normalize" in (op.api or "")
    return Verdict("normalise_zero_vector", "warning", place) if normalises else None


def exploding_recurrence(suspect: Suspect) -> Verdict | None:
    """Factors above one, multiplied. The op named is the one that adds most, of the kind that adds most."""
    worst = min(course_of(suspect).values(), key=lambda share: share.total, default=None)
    return Verdict("exploding_recurrence", "warning", worst.least[1] if worst is not None else suspect.culprit)
