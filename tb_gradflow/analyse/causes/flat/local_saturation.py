"""Which cause it is when a single op that can saturate loses most of the gradient."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.course import SINGLE_DECADES, steepest
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict

LOCAL_FADING = {
    "Sigmoid": "saturation_sigmoid",
    "Tanh": "saturation_sigmoid",
    "Softmax": "saturation_softmax",
    "LogSoftmax": "saturation_softmax",
}


def local_saturation(suspect: Suspect) -> Verdict | None:
    """A single squashing function loses most of the gradient: it is saturated, and depth is not the reason. If the
    gradient that it gets was not recorded, a product behind it may have lost it: with the values of an attention, for
    example, where these are small.
    """
    most, place = steepest(suspect)
    if most < SINGLE_DECADES or suspect.type_of(place) not in LOCAL_FADING:
        return None
    if suspect.measured.of_op(suspect.target, place) is None:
        return None
    return Verdict(LOCAL_FADING[suspect.type_of(place)], "warning", place)
