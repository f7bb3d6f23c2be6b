"""Fixes for grids and tables of numbers whose ops have no gradient: the same result by arithmetic."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tb_gradflow.analyse.user_code.candidate import Candidate, candidates, in_place_of
from tb_gradflow.analyse.user_code.draft import Draft, is_plain
from tb_gradflow.analyse.user_code.library import Library
from tb_gradflow.analyse.user_code.place import Place, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.python import argument_of, is_number, name_of

_SAME = "The forward values do not change."


def by_arithmetic(group: Group) -> Iterator[Candidate]:
    """`linspace`, `range`, `one_hot` and weighted `bincount` computed from numbers that are learned."""
    place = place_of_group(group)
    call = place.call if place is not None else None
    if place is None or call is None or place.library is None:
        return
    draft = place.draft()
    if name_of(call.func) == "shuffle":
        written = _shuffle(place, call, draft)
    elif (written := _WRITTEN.get(name_of(call.func), lambda _place, _call: None)(place, call)) is not None:
        written = in_place_of(place.code, call, written)
    if written is not None:
        yield from candidates(_SAME, draft.replace(call, written).edit())


def slopes_by_difference(group: Group) -> Iterator[Candidate]:
    """For a function of numbers that has a gradient for some of its arguments: adds, for each other argument, a term
    that is zero and whose derivative is the central difference of the function."""
    place = place_of_group(group)
    call = place.call if place is not None else None
    missing = _WITHOUT_SLOPE.get(group.op.type, ()) if group.op is not None else ()
    if place is None or call is None or place.library is None or call.keywords or not missing:
        return
    if any(isinstance(each, ast.Starred) for each in call.args) or len(call.args) <= max(missing):
        return
    draft, code, library = place.draft(), place.code, place.library
    names = [draft.computed_before(each, f"x{number}") for number, each in enumerate(call.args)]
    if not all(names):
        return
    whole = f"{code.written(call.func)}({', '.join(names)})"
    for number in missing:
        x = names[number]
        step = f"0.01 * {x}"  # relative, so that a positive number stays one
        above, below = (
            f"{code.written(call.func)}({', '.join([*names[:number], f'{x} {sign} {step}', *names[number + 1 :]])})"
            for sign in "+-"
        )
        slope = library("stop_gradient", f"({above} - {below}) / (0.02 * {x})")
        whole += f" + {slope} * ({x} - {library('stop_gradient', x)})"
    yield from candidates(_BY_DIFFERENCE, draft.replace(call, in_place_of(code, call, whole)).edit())


_BY_DIFFERENCE = (
    "The forward values do not change; the derivative is a central difference, right to about three digits, and has no "
    "derivative itself."
)

# The inputs for which the op's gradient function returns none, although the function has a derivative.
_WITHOUT_SLOPE = {"Betainc": (0, 1)}


def continuous_draw(group: Group) -> Iterator[Candidate]:
    """Draws of a normal distribution with the mean and the variance of a Poisson distribution."""
    place = place_of_group(group)
    call = place.call if place is not None else None
    if place is None or call is None or place.library is None or place.library.is_keras:
        return
    shape, code, library = argument_of(call, 0, "shape"), place.code, place.library
    stateless = name_of(call.func) == "stateless_poisson"
    rate = argument_of(call, 2 if stateless else 1, "lam")
    seed = argument_of(call, 1, "seed") if stateless else None
    if name_of(call.func) not in ("poisson", "stateless_poisson") or shape is None or rate is None:
        return
    draft = place.draft()
    mean = draft.computed_before(rate, "rate", "lam")
    if not mean or (stateless and seed is None):
        return
    if seed is not None:
        noise = f"{library.prefix}.random.stateless_normal({code.written(shape)}, {code.written(seed)})"
    else:
        whole = library("concat", f"[{code.written(shape)}, {library('shape', mean)}]", "axis=0")
        noise = f"{library.prefix}.random.normal({whole})"
    written = f"{mean} + {library('sqrt', mean)} * {noise}"
    yield from candidates(_CONTINUOUS, draft.replace(call, in_place_of(code, call, written)).edit())


_CONTINUOUS = "Draws are no longer whole numbers, and may be below zero; they have the same mean and variance."


def _linspace(place: Place, call: ast.Call) -> str | None:
    start, stop, count = argument_of(call, 0, "start"), argument_of(call, 1, "stop"), argument_of(call, 2, "num")
    if start is None or stop is None or count is None or len(call.args) + len(call.keywords) != 3:
        return None
    library, code = _library(place), place.code
    first, last = code.operand(start), code.operand(stop)
    return f"{first} + ({last} - {first}) * {library('linspace', '0.0', '1.0', code.written(count))}"


def _range(place: Place, call: ast.Call) -> str | None:
    given = list(call.args)
    if call.keywords or not 2 <= len(given) <= 3:
        return None
    code, library = place.code, _library(place)
    start, limit = (code.operand(each) for each in given[:2])
    step = code.operand(given[2]) if len(given) == 3 else "1.0"
    length = limit if is_number(given[0]) and ast.literal_eval(given[0]) == 0 else f"({limit} - {start})"
    count = library("ceil", f"{length} / {step}")
    scaled = f"{step} * {library('range' if not library.is_keras else 'arange', count)}"
    return scaled if length == limit else f"{start} + {scaled}"


def _one_hot(place: Place, call: ast.Call) -> str | None:
    on, off = argument_of(call, 2, "on_value"), argument_of(call, 3, "off_value")
    if on is None or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    code = place.code
    rest = [code.written(each) for each in call.args[:2]]
    rest += [
        f"{each.arg}={code.written(each.value)}" for each in call.keywords if each.arg not in ("on_value", "off_value")
    ]
    if not any(each.arg == "dtype" for each in call.keywords):
        rest.append(f"dtype={_library(place).dtype('float32')}")
    hot = f"{code.written(call.func)}({', '.join(rest)})"
    high = code.operand(on)
    if off is None:
        return f"{high} * {hot}"
    low = code.operand(off)
    return f"{low} + ({high} - {low}) * {hot}"


def _shuffle(place: Place, call: ast.Call, draft: Draft) -> str | None:
    """Gathers the rows in a random order: the order needs no gradient."""
    given = argument_of(call, 0, "value")
    prefix = ast.unparse(call.func).rpartition(".random.shuffle")[0]
    if given is None or not prefix or not (rows := draft.computed_before(given, "rows", "values")):
        return None
    rest = [f"{each.arg}={place.code.written(each.value)}" for each in call.keywords if each.arg != "value"]
    rest = [*(place.code.written(each) for each in call.args[1:]), *rest]
    order = ", ".join([f"{prefix}.range({prefix}.shape({rows})[0])", *rest])
    return f"{prefix}.gather({rows}, {place.code.written(call.func)}({order}))"


def _weighted_count(place: Place, call: ast.Call) -> str | None:
    """A sum over the elements of each value; there are as many values as the largest needs, and no fewer than
    `minlength`."""
    values, weights = argument_of(call, 0, "arr", "x"), argument_of(call, 1, "weights")
    least, most = argument_of(call, 2, "minlength"), argument_of(call, 3, "maxlength")
    known = {"arr", "x", "weights", "minlength", "maxlength"}
    if values is None or weights is None or any(each.arg not in known for each in call.keywords):
        return None
    code, library = place.code, _library(place)
    if library.is_keras or not is_plain(values) or len(call.args) > 4:
        return None
    index = code.written(values)
    size = f"{library('max', index)} + 1"
    if least is not None:
        size = library("maximum", code.written(least), size)
    if most is not None and (least is None or code.written(least) != code.written(most)):
        return None
    if most is not None:  # `bincount` leaves out larger values, for which `unsorted_segment_sum` raises an error
        size = code.written(most)
        index = library("where", f"{code.operand(values)} < {code.operand(most)}", index, "-1")
    return f"{library.prefix}.math.unsorted_segment_sum({code.written(weights)}, {index}, {size})"


def _library(place: Place) -> Library:
    assert place.library is not None
    return place.library


_WRITTEN = {"linspace": _linspace, "range": _range, "arange": _range, "one_hot": _one_hot, "bincount": _weighted_count}
