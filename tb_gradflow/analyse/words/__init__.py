"""What a finding says: what happens, in the user's words, and what to write instead.

One function a cause, named in the tables of the modules here.
"""

from __future__ import annotations

from tb_gradflow.analyse.causes.by_hand import is_given
from tb_gradflow.analyse.evidence.suspects import NO_OP
from tb_gradflow.analyse.words import (
    broadcast,
    cuts,
    discrete,
    flat,
    given,
    hidden,
    left,
    masked,
    moves,
    no_way,
    normalised,
    not_finite,
    numbers,
    own_gradient,
    relu,
    soft,
    spoiled,
    stopped,
    stored,
    unused,
)
from tb_gradflow.analyse.words.half import for_half
from tb_gradflow.analyse.words.names import Group, Text, Writer

_WRITERS: dict[str, Writer] = {
    **broadcast.WRITERS,
    **cuts.WRITERS,
    **discrete.WRITERS,
    **flat.WRITERS,
    **hidden.WRITERS,
    **left.WRITERS,
    **masked.WRITERS,
    **moves.WRITERS,
    **no_way.WRITERS,
    **not_finite.WRITERS,
    **normalised.WRITERS,
    **numbers.WRITERS,
    **own_gradient.WRITERS,
    **relu.WRITERS,
    **soft.WRITERS,
    **spoiled.WRITERS,
    **stopped.WRITERS,
    **stored.WRITERS,
    **unused.WRITERS,
}

# Written with their findings: see `report.mask_notes` and `report.override_notes`.
OF_NO_VARIABLE = frozenset({"mask_dropped", "override_without_effect"})


def text_of(group: Group) -> Text:
    """Message and fix of a finding."""
    if group.verdict.culprit == NO_OP and is_given(group.suspect.topology, group.suspect.target):
        writer = given.WRITERS.get(group.verdict.cause)
        if writer is not None:
            return writer(group)
    return for_half(group, _WRITERS[group.verdict.cause](group))


def known_causes() -> frozenset[str]:
    """The causes that there are words for."""
    return frozenset(_WRITERS) | OF_NO_VARIABLE
