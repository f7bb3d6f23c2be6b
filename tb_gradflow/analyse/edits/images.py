"""Fixes for image functions that have no gradient, or no second one: the same result from functions that have one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tb_gradflow.analyse.graph.inner_gradients import forward_of
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates, in_place_of
from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.analyse.user_code.draft import is_plain
from tb_gradflow.analyse.user_code.library import Library
from tb_gradflow.analyse.user_code.place import Place, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.python import argument_of, name_of
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
        yield from candidates("The result is not limited to full saturation.", _saturation(place, place.call))
    elif name == "adjust_hue":
        yield from candidates(_SAME, _hue(place, place.call))
    elif name == "hsv_to_rgb":
        yield from candidates(_SAME, _rgb(place, place.call))
    elif name == "resize" and len(_shape_made(group, group.culprit)) == 4:
        yield from candidates(_SAME, _resized(place, place.call))


def sampled_between(group: Group) -> Iterator[Candidate]:
    """For a position in an image that is learned: weights each row and column by its distance from the position, as
    Jaderberg et al. sample, https://arxiv.org/abs/1506.02025."""
    place = place_of_group(group)
    if place is None or place.call is None or place.library is None:
        return
    name = name_of(place.call.func)
    if name == "extract_glimpse":
        yield from candidates(_BETWEEN, _glimpse(place, place.call))
    elif name in ("ImageProjectiveTransformV3", "affine_transform"):
        nearest = argument_of(place.call, 2 if name == "affine_transform" else -1, "interpolation")
        exact = isinstance(nearest, ast.Constant) and str(nearest.value).lower() == "bilinear"
        cost = _SAMPLED if exact or (nearest is None and name == "affine_transform") else f"{_BETWEEN} {_SAMPLED}"
        yield from candidates(cost, _projected(place, place.call))


def resized_by_products(group: Group) -> Iterator[Candidate]:
    """For the second derivative of a resized image: resizing is linear in rows and columns, and a product with two
    constant matrices can be differentiated as often as needed."""
    op = forward_of(group.trace, group.culprit) if group.op is not None else -1
    place = place_of_group(group, op) if op >= 0 and group.trace.ops[op].type.startswith("Resize") else None
    if place is None or place.call is None or place.library is None or place.library.is_keras:
        return
    if name_of(place.call.func) == "resize" and len(_shape_made(group, op)) == 4:
        yield from candidates(_SAME, _resized(place, place.call))


def _shape_made(group: Group, op: int) -> tuple[int, ...]:
    return group.trace.ops[op].outputs[0].shape or ()


def _resized(place: Place, call: ast.Call) -> Edit | None:
    code, library, statement = place.code, place.library, place.statement
    given, size = argument_of(call, 0, "images"), argument_of(call, 1, "size")
    if library is None or statement is None or given is None or size is None:
        return None
    counts = [code.written(each) for each in size.elts] if isinstance(size, (ast.List, ast.Tuple)) else []
    if not counts and is_plain(size):
        counts = [f"{code.written(size)}[{axis}]" for axis in (0, 1)]
    if len(counts) != 2:
        return None
    known = {"images", "size", "method", "antialias"}
    if len(call.args) > 3 or any(each.arg not in known for each in call.keywords):
        return None
    others = [code.written(each) for each in call.args[2:]]
    others += [f"{each.arg}={code.written(each.value)}" for each in call.keywords if each.arg not in ("images", "size")]
    draft = place.draft()
    image = draft.computed_before(given, "image", "images")
    if not image or not code.starts_a_line(statement) or not code.is_evaluated_once(call):
        return None
    names = draft.free_name(call, "rows"), draft.free_name(call, "columns")
    resize = code.written(call.func)
    for axis, (name, count) in enumerate(zip(names, counts, strict=True), 1):
        kept = f"{image}.shape[{axis}]"
        whole = f"{library('eye', kept)}[..., None]"
        matrix = ", ".join([whole, f"[{count}, {kept}]", *others])
        draft.insert_before(statement, f"{name} = {resize}({matrix})[..., 0]")
    product = library("einsum", '"ri,cj,bijd->brcd"', *names, image)
    return draft.replace(call, product).edit()


_SAME = "The forward values do not change."
_BETWEEN = "Values between two pixels are interpolated; outside the image they are zero."
_SAMPLED = "This takes more memory: one weight for each row and each column of the image, for each pixel of the result."


def _contrast(place: Place, call: ast.Call) -> Edit | None:
    """As the documentation defines it: `(x - mean) * contrast_factor + mean`."""
    return _around_a_centre(place, call, "contrast_factor", "mean", "axis=[-3, -2]")


def _saturation(place: Place, call: ast.Call) -> Edit | None:
    """For a colour of the same hue and value, the difference between the largest channel and each other is proportional
    to the saturation: `v - v * s * k`."""
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


def _hue(place: Place, call: ast.Call) -> Edit | None:
    given, delta = argument_of(call, 0, "image"), argument_of(call, 1, "delta")
    if given is None or delta is None or place.library is None:
        return None
    turned = f"(h + {place.code.operand(delta)})"
    hsv = f"{place.library.prefix}.image.rgb_to_hsv({place.code.written(given)})"
    return place.draft().replace(call, _to_rgb(place.library, hsv, turned)).edit()


def _rgb(place: Place, call: ast.Call) -> Edit | None:
    given = argument_of(call, 0, "images")
    if given is None or place.library is None:
        return None
    return place.draft().replace(call, _to_rgb(place.library, place.code.written(given), "h")).edit()


def _to_rgb(library: Library, hsv: str, hue: str) -> str:
    """`v - v * s * clip(min(k, 4 - k), 0, 1)` with `k = (n + 6 * h) mod 6`, and n = 5, 3, 1 for red, green, blue:
    https://en.wikipedia.org/wiki/HSL_and_HSV#HSV_to_RGB_alternative."""
    tf = library.prefix
    part = f"{tf}.clip_by_value({tf}.minimum(k, 4.0 - k), 0.0, 1.0)"
    k = f"{tf}.math.floormod(6.0 * {hue} + [5.0, 3.0, 1.0], 6.0)"
    return f"(lambda h, s, v: (lambda k: v - v * s * {part})({k}))(*{tf}.split({hsv}, 3, axis=-1))"


def _glimpse(place: Place, call: ast.Call) -> Edit | None:
    given, size = argument_of(call, 0, "input"), argument_of(call, 1, "size")
    offsets = argument_of(call, 2, "offsets")
    code, library, statement = place.code, place.library, place.statement
    centred = [argument_of(call, 3, "centered"), argument_of(call, 4, "normalized")]
    if any(each is not None and not (isinstance(each, ast.Constant) and each.value is True) for each in centred):
        return None
    if given is None or offsets is None or library is None or statement is None:
        return None
    if not isinstance(size, (ast.List, ast.Tuple)) or len(size.elts) != 2 or not _can_be_computed_before(place, call):
        return None
    draft = place.draft()
    image = draft.computed_before(given, "image", "images")
    where = draft.computed_before(offsets, "offsets", "place")
    if not image or not where:
        return None
    lines = []
    weights = []
    for axis, name in ((0, "rows"), (1, "columns")):
        positions = draft.free_name(call, name)
        weights.append(draft.free_name(call, f"by_{name.rstrip('s')}"))
        count = library("cast", library.size(image, str(axis + 1)), library.dtype("float32"))
        window = _number(code, library, size.elts[axis])
        middle = f"(({where}[:, {axis}:{axis + 1}] + 1.0) * {count} - {window}) / 2.0"
        lines.append(f"{positions} = {middle} + {library('arange', window)}")
        lines.append(f"{weights[-1]} = {_near(library, positions, image, axis + 1)}")
    draft.insert_before(statement, *lines)
    taken = library("einsum", '"bir,bjc,brcd->bijd"', *weights, image)
    return draft.replace(call, taken).edit()


def _projected(place: Place, call: ast.Call) -> Edit | None:
    """As the op's documentation defines it: the pixel at `(x, y)` is taken from `((a0 x + a1 y + a2) / k, (b0 x + b1 y
    + b2) / k)`, with `k = c0 x + c1 y + 1`."""
    given, transform = argument_of(call, 0, "images"), argument_of(call, 1, "transforms")
    transform = transform or argument_of(call, -1, "transform")
    library, statement = place.library, place.statement
    if given is None or transform is None or library is None or statement is None:
        return None
    size = argument_of(call, 2, "output_shape") if name_of(call.func) == "ImageProjectiveTransformV3" else None
    if not _can_be_computed_before(place, call) or argument_of(call, -1, "data_format") is not None:
        return None
    draft = place.draft()
    image = draft.computed_before(given, "image", "images")
    if not image:
        return None
    a, row, column, depth = (draft.free_name(call, name) for name in ("theta", "row", "column", "depth"))
    batch = library("zeros", f"[{library.size(image, '0')}, 1, 1, 1]")
    numbers = library("reshape", place.code.written(transform), "[-1, 8, 1, 1]")
    sides = [library("arange", _extent(place, library, size, image, axis)) for axis in (0, 1)]
    grid = library("meshgrid", *sides, 'indexing="ij"')
    by_row, by_column = draft.free_name(call, "by_row"), draft.free_name(call, "by_column")
    along, down = (f"(({a}[:, {n}] * {column} + {a}[:, {n + 1}] * {row} + {a}[:, {n + 2}]) / {depth})" for n in (0, 3))
    draft.insert_before(
        statement,
        f"{a} = {numbers} + {batch}",
        f"{row}, {column} = {grid}",
        f"{depth} = {a}[:, 6] * {column} + {a}[:, 7] * {row} + 1.0",
        f"{by_row} = {_near(library, down, image, 1)}",
        f"{by_column} = {_near(library, along, image, 2)}",
    )
    taken = library("einsum", '"bijr,bijc,brcd->bijd"', by_row, by_column, image)
    return draft.replace(call, taken).edit()


def _near(library: Library, positions: str, image: str, axis: int) -> str:
    """The weight of each row or column of an image at given positions: it falls from one to zero within a distance of
    one."""
    count = library("cast", library.size(image, str(axis)), library.dtype("float32"))
    far = library("abs", f"{positions}[..., None] - {library('arange', count)}")
    return library("maximum", f"1.0 - {far}", "0.0")


def _extent(place: Place, library: Library, size: ast.expr | None, image: str, axis: int) -> str:
    if isinstance(size, (ast.List, ast.Tuple)) and len(size.elts) == 2:
        return _number(place.code, library, size.elts[axis])
    whole = f"{place.code.operand(size)}[{axis}]" if size is not None else library.size(image, str(axis + 1))
    return library("cast", whole, library.dtype("float32"))


def _number(code: Code, library: Library, node: ast.expr) -> str:
    """A size as a floating-point number."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return f"{node.value}.0"
    return library("cast", code.written(node), library.dtype("float32"))


def _can_be_computed_before(place: Place, call: ast.Call) -> bool:
    statement = place.statement
    return statement is not None and place.code.is_evaluated_once(call) and place.code.starts_a_line(statement)
