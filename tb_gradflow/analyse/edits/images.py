"""Fixes for functions on images that have no gradient: the same from functions that have one."""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.analyse.user_code.candidate import Candidate, candidates, in_place_of
from tb_gradflow.analyse.user_code.place import name_of, place_of_group
from tb_gradflow.analyse.words.names import Group


def contrast_by_hand(group: Group) -> Iterator[Candidate]:
    """`tf.image.adjust_contrast` as its documentation defines it: `(x - mean) * contrast_factor + mean`."""
    place = place_of_group(group)
    if place is None or place.call is None or place.library is None or place.library.is_keras:
        return
    given, factor = place.argument(0, "images"), place.argument(1, "contrast_factor")
    if name_of(place.call.func) != "adjust_contrast" or given is None or factor is None:
        return
    draft = place.draft()
    value = draft.computed_before(given, "image", "images")
    if value:
        mean = place.library("mean", value, "axis=[-3, -2]", "keepdims=True")
        code = place.code
        written = f"({value} - {mean}) * {code.operand(factor)} + {mean}"
        cost = "It computes the same values."
        yield from candidates(cost, draft.replace(place.call, in_place_of(code, place.call, written)).edit())
