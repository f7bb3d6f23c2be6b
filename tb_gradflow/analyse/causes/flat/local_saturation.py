"""Which cause it is when a single op that can saturate loses most of the gradient."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.gradient_sizes import SINGLE_DECADES, steepest
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict

LOCAL_FADING = {
    "Sigmoid": "saturation_sigmoid",
    "Tanh": "saturation_sigmoid",
    "Softmax": "saturation_softmax",
    "LogSoftmax": "saturation_softmax",
}


def local_saturation(suspect: Suspect) -> Verdict | None:
    """A single squashing function loses most of the gradient: it is saturated, and depth is not the reason. If the
    gradient that it gets was not recorded, a product behind it may have lost a part: with the values of an attention,
    for example, which are as small as the embeddings that they are computed from.
    """
    most, place = steepest(suspect)
    is_alone = suspect.measured.of_op(suspect.target, place) is not None
    least = SINGLE_DECADES if is_alone else 2 * SINGLE_DECADES
    if most < least or suspect.type_of(place) not in LOCAL_FADING:
        return None
    return Verdict(LOCAL_FADING[suspect.type_of(place)], "warning", place)
