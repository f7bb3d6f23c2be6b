"""Which cause it is when the gradient turns to zeros in a loop whose inside was not recorded."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.bodies import SQUASHING, first_of_loop, loop_in, unrecorded_before
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict


def loop_unseen(suspect: Suspect) -> Verdict | None:
    """It is only known that it happens in a loop: saturated gates are the usual reason."""
    inside = unrecorded_before(suspect)
    loop = loop_in(suspect, inside)
    if loop < 0:
        return None
    if any(suspect.type_of(op) in ("Select", "SelectV2") for op in inside):
        # Large inputs were tested before; otherwise, in a layer with a mask, the mask is the usual reason.
        return Verdict("mask_multiplies_to_zero", "warning", first_of_loop(suspect, loop))
    squashes = any(suspect.type_of(op) in SQUASHING for op in inside)
    return Verdict("saturation_sigmoid" if squashes else "zero_gradient", "warning", loop)
