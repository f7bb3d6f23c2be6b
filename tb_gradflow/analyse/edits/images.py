"""Fixes for functions on images that have no gradient: the same from functions that have one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tb_gradflow.analyse.user_code.candidate import Candidate, candidates, in_place_of
from tb_gradflow.analyse.user_code.place import Place, argument_of, name_of, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.report import Edit


def image_by_hand(group: Group) -> Iterator[Candidate]:
    """Functions of `tf.image`, written out."""
    place = place_of_group(group)
    if place is None or place.call is None or place.library is None or place.library.is_keras:
        return
    name = name_of(place.call.func)
    if name == "adjust_contrast":
        yield from candidates(_SAME, _contrast(place, place.call))
    elif name == "adjust_saturation":
        yield from candidates("Saturation is not clipped at its maximum.", _saturation(place, place.call))
    elif name == "hsv_to_rgb":
        yield from candidates(_SAME, _rgb(place, place.call))


_SAME = "It computes the same values."


def _contrast(place: Place, call: ast.Call) -> Edit | None:
    """As the documentation defines it: `(x - mean) * contrast_factor + mean`."""
    return _around_a_centre(place, call, "contrast_factor", "mean", "axis=[-3, -2]")


def _saturation(place: Place, call: ast.Call) -> Edit | None:
    """Of a colour of the same hue and value, the distance of each channel to the largest is in proportion to the
    saturation: `v - v * s * k`."""
    return _around_a_centre(place, call, "saturation_factor", "max", "axis=-1")


def _around_a_centre(place: Place, call: ast.Call, factor_name: str, centre_of: str, axis: str) -> Edit | None:
    given = argument_of(call, 0, "images") or argument_of(call, 0, "image")
    factor = argument_of(call, 1, factor_name)
    if given is None or factor is None or place.library is None:
        return None
    draft = place.draft()
    value = draft.computed_before(given, "image", "images")
    if not value:
        return None
    centre = place.library(centre_of, value, axis, "keepdims=True")
    written = f"({value} - {centre}) * {place.code.operand(factor)} + {centre}"
    return draft.replace(call, in_place_of(place.code, call, written)).edit()


def _rgb(place: Place, call: ast.Call) -> Edit | None:
    """`v - v * s * clip(min(k, 4 - k), 0, 1)` with `k = (n + 6 * h) mod 6`, and n = 5, 3, 1 for red, green, blue:
    https://en.wikipedia.org/wiki/HSL_and_HSV#HSV_to_RGB_alternative."""
    given = argument_of(call, 0, "images")
    if given is None or place.library is None:
        return None
    tf = place.library.prefix
    part = f"{tf}.clip_by_value({tf}.minimum(k, 4.0 - k), 0.0, 1.0)"
    k = f"{tf}.math.floormod(6.0 * h + [5.0, 3.0, 1.0], 6.0)"
    written = (
        f"(lambda h, s, v: (lambda k: v - v * s * {part})({k}))(*{tf}.split({place.code.written(given)}, 3, axis=-1))"
    )
    return place.draft().replace(call, written).edit()
