"""Fixes for positions: where an `argmax`, a sample or an index is used instead of what it was made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tb_gradflow.analyse.edits.soft import Softener, name_of_call
from tb_gradflow.analyse.evidence.suspects import discrete_part
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates, in_place_of
from tb_gradflow.analyse.user_code.place import Place, argument_of, name_of, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.report import Edit

_MEAN = (
    "The result is the mean position under a softmax: exact where one value is far above the rest, fractional "
    "elsewhere."
)
_THROUGH = "The forward values do not change; the gradient is that of the probabilities, not the derivative."
_WEIGHED = "The result is a softmax-weighted mean of the rows, instead of one row."
_BETWEEN = "Between two positions the value is interpolated."
_NEAR = "Values near the threshold count in part."

# At a tenth of the differences the largest of a few scores has nearly all the weight.
_SHARPNESS = "0.1"

_ROUNDINGS = ("cast", "round", "floor", "ceil", "rint")


def soft_position(group: Group) -> Iterator[Candidate]:
    """For `argmax` and for an index computed from learned positions."""
    place = place_of_group(group)
    if place is None or place.library is None:
        return
    if place.call is not None and name_of(place.call.func) in ("argmax", "argmin", "categorical", "argmax_v2"):
        yield from _of_a_choice(group, place)
    else:
        yield from _of_a_look_up(group)


def _of_a_choice(group: Group, place: Place) -> Iterator[Candidate]:
    part = discrete_part(group.suspect)
    consumers = {use.consumer for use in part.uses}
    kinds = {group.trace.ops[op].type for op in consumers}
    if len(consumers) != 1:
        return
    back = place_of_group(group, next(iter(consumers)))
    if back is None or back.code is not place.code or back.node is None or place.node is None:
        return
    if place.code.function(place.node) is not place.code.function(back.node):
        return
    if kinds == {"OneHot"}:
        yield from candidates(_THROUGH, _one_hot(group, place, back))
    elif kinds == {"Cast"} and {group.trace.ops[op].type for op in part.ops} <= {"ArgMax", "ArgMin", "Cast"}:
        yield from candidates(_MEAN, _mean_position(place, back))
    elif kinds <= {"GatherV2", "ResourceGather"}:
        yield from candidates(_WEIGHED, _weighed_rows(place, back))


def _scores(place: Place) -> str:
    """What the softmax takes instead of `argmax`; of `argmin` its negative."""
    assert place.call is not None and place.subject is not None
    sign = "-" if name_of(place.call.func) == "argmin" else ""
    return f"{sign}{place.code.operand(place.subject)}"


def _mean_position(place: Place, back: Place) -> Edit | None:
    library, call, given = place.library, place.call, place.subject
    if library is None or call is None or given is None or back.node is None:
        return None
    axis_given = argument_of(call, 1, "axis")
    axis = place.code.written(axis_given) if axis_given is not None else ("-1" if library.is_keras else "0")
    if axis_given is None and library.is_keras:
        return None
    draft = place.draft()
    value = draft.computed_before(given, "scores", "logits")
    if not value:
        return None
    sign = "-" if name_of(call.func) == "argmin" else ""
    weights = library("softmax", f"{sign}{value} / {_SHARPNESS}", f"axis={axis}")
    positions = library("cast", library("arange", library.size(value, axis)), f"{value}.dtype")
    mean = library("tensordot", weights, positions, f"axes=[[{axis}], [0]]")
    if back.node is call or call in ast.walk(back.node):
        return draft.replace(back.node, mean).edit()
    if value != place.code.written(given):
        draft.replace(given, value)
    return draft.replace(back.node, mean).edit()


def _one_hot(group: Group, place: Place, back: Place) -> Edit | None:
    """A straight-through one-hot vector: Jang, Gu and Poole, https://arxiv.org/abs/1611.01144."""
    library, given = place.library, place.subject
    if library is None or given is None or back.node is None or place.call is None:
        return None
    made, scores = _shape_made(group, back), _shape_given(group)
    if made is None or scores is None or made != scores:
        return None
    draft = place.draft()
    value = draft.computed_before(given, "scores", "logits")
    if not value:
        return None
    sign = "-" if name_of(place.call.func) == "argmin" else ""
    soft = library("softmax", f"{sign}{value}", "axis=-1")
    hard = back.code.written(back.node)
    if value != place.code.written(given):
        if place.call in ast.walk(back.node):
            hard = hard.replace(place.code.written(given), value)
        else:
            draft.replace(given, value)
    statement = back.statement
    name = back.code.free_name(back.node, "soft", "probabilities")
    if statement is None or not back.code.is_evaluated_once(back.node) or not back.code.starts_a_line(statement):
        return None
    draft.insert_before(statement, f"{name} = {soft}")
    through = f"{name} + {library('stop_gradient', f'{hard} - {name}')}"
    return draft.replace(back.node, in_place_of(back.code, back.node, through)).edit()


def _shape_made(group: Group, back: Place) -> tuple[int, ...] | None:
    part = discrete_part(group.suspect)
    consumer = part.uses[0].consumer
    outputs = group.trace.ops[consumer].outputs
    del back
    return outputs[0].shape if outputs else None


def _shape_given(group: Group) -> tuple[int, ...] | None:
    if group.op is None:
        return None
    edge = next((each for each in group.op.inputs if each.input == 0 and each.op >= 0), None)
    outputs = group.trace.ops[edge.op].outputs if edge is not None else ()
    return outputs[edge.output].shape if edge is not None and edge.output < len(outputs) else None


def _weighed_rows(place: Place, back: Place) -> Edit | None:
    """A row looked up by `argmax`."""
    library, given = place.library, place.subject
    if library is None or given is None or not isinstance(back.node, ast.Call):
        return None
    table, axis = argument_of(back.node, 0, "params"), argument_of(back.node, -1, "axis")
    if name_of(back.node.func) == "embedding_lookup":
        axis = None
    if table is None or axis is not None or argument_of(back.node, -1, "batch_dims") is not None:
        return None
    draft = place.draft()
    weights = library("softmax", f"{_scores(place)} / {_SHARPNESS}", "axis=-1")
    product = library("matmul", weights, back.code.written(table))
    return draft.replace(back.node, product).edit()


def _of_a_look_up(group: Group) -> Iterator[Candidate]:
    """`tf.gather(table, tf.cast(position, tf.int32))`, interpolated between two rows."""
    part = discrete_part(group.suspect)
    consumers = {use.consumer for use in part.uses}
    kinds = {group.trace.ops[op].type for op in consumers}
    if len(consumers) != 1 or not kinds <= {"GatherV2", "ResourceGather"}:
        return
    place = place_of_group(group)
    back = place_of_group(group, next(iter(consumers)))
    if place is None or back is None or not isinstance(back.node, ast.Call) or place.library is None:
        return
    if place.code is not back.code or place.subject is None or name_of_call(place.node) not in _ROUNDINGS:
        return
    yield from candidates(_BETWEEN, _interpolated(place, back, back.node))


def _interpolated(place: Place, back: Place, look_up: ast.Call) -> Edit | None:
    library, code = place.library, back.code
    given = place.subject
    while isinstance(given, ast.Call) and name_of(given.func) in _ROUNDINGS and given.args:
        given = given.args[0]
    table, axis = argument_of(look_up, 0, "params"), argument_of(look_up, -1, "axis")
    statement = back.statement
    if library is None or given is None or table is None or statement is None or axis is not None:
        return None
    indices = argument_of(look_up, 1, "indices")
    if not code.is_evaluated_once(look_up) or not code.starts_a_line(statement) or indices is None:
        return None
    draft = back.draft()
    position = code.written(given)
    low, share = code.free_name(look_up, "low", "lower"), code.free_name(look_up, "share", "fraction")
    rows = code.operand(table)
    integer = '"int32"' if library.is_keras else f"{library.prefix}.int32"
    last = f"{library('shape', rows)}[0]"
    at = library("clip", library("cast", library("floor", position), integer), "0", f"{last} - 2")
    draft.insert_before(
        statement,
        f"{low} = {at}",
        f"{share} = {position} - {library('cast', low, library.dtype('float32'))}",
    )
    name = code.written(look_up.func)
    shares = share if _rank(back.group) == 1 else f"{share}[..., {library.prefix}.newaxis]"
    if library.is_keras and shares != share:
        shares = f"{share}[..., None]"
    blended = f"(1.0 - {shares}) * {name}({rows}, {low}) + {shares} * {name}({rows}, {low} + 1)"
    return draft.replace(look_up, in_place_of(code, look_up, blended)).edit()


def _rank(group: Group) -> int:
    """The rank of the table that is looked up in: of its rows, one more than that of a position each."""
    part = discrete_part(group.suspect)
    op = group.trace.ops[part.uses[0].consumer]
    if op.reads is not None:
        return len(group.trace.variables[op.reads].shape)
    edge = next((each for each in op.inputs if each.input == 0 and each.op >= 0), None)
    outputs = group.trace.ops[edge.op].outputs if edge is not None else ()
    shape = outputs[edge.output].shape if edge is not None and edge.output < len(outputs) else None
    return len(shape) if shape is not None else 0


def _soft_histogram(place: Place) -> Edit | None:
    """Each value shared between the two nearest of the bins' centres, in proportion to how near they are."""
    call, library, code = place.call, place.library, place.code
    assert call is not None
    assert library is not None
    values, between, bins = (
        argument_of(call, 0, "values"),
        argument_of(call, 1, "value_range"),
        argument_of(call, 2, "nbins"),
    )
    if values is None or between is None:
        return None
    if isinstance(between, (ast.List, ast.Tuple)) and len(between.elts) == 2:
        low, high = (code.operand(each) for each in between.elts)
    elif isinstance(between, (ast.Name, ast.Attribute)):
        low, high = f"{code.written(between)}[0]", f"{code.written(between)}[1]"
    else:
        return None
    count = code.operand(bins) if bins is not None else "100"
    centres = library("linspace", low, high, count)
    flat = library("reshape", code.written(values), "[-1, 1]")
    far = f"{library('abs', f'{flat} - {centres}')} * (({count} - 1) / ({high} - {low}))"
    shares = library("maximum", f"1.0 - {far}", "0.0")
    return place.draft().replace(call, library("sum", shares, "axis=0")).edit()


_SHARED = "A value counts in part for each of its two nearest bins, whose centres span the range."


def soft_count(group: Group) -> Iterator[Candidate]:
    """`count_nonzero(x > t)` as a sum of soft steps."""
    place = place_of_group(group)
    if place is None or place.library is None or place.call is None or not place.call.args:
        return
    if name_of(place.call.func) == "histogram_fixed_width":
        yield from candidates(_SHARED, _soft_histogram(place))
    if name_of(place.call.func) != "count_nonzero":
        return
    counted = place.call.args[0]
    soft = Softener(place, integers=False)(counted)
    library, code = place.library, place.code
    if soft is None:
        near = library("exp", "-" + library("square", f"{code.operand(counted)} / 0.1"))
        soft = f"1.0 - {near}"
    rest = [code.written(each) for each in place.call.args[1:]]
    rest += [f"{each.arg}={code.written(each.value)}" for each in place.call.keywords if each.arg != "dtype"]
    yield from candidates(_NEAR, place.draft().replace(place.call, library("sum", soft, *rest)).edit())
