"""Fixes for positions: an `argmax`, a sample or an index is used instead of the values from which it was computed."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from tb_gradflow.analyse.edits.embeddings import SOFT_ROWS, soft_rows
from tb_gradflow.analyse.edits.soft import name_of_call, summed
from tb_gradflow.analyse.evidence.discrete import are_probabilities, is_at_limits_of_logarithm
from tb_gradflow.analyse.evidence.suspects import discrete_part
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates, in_place_of
from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.analyse.user_code.draft import Draft, is_plain
from tb_gradflow.analyse.user_code.library import Library
from tb_gradflow.analyse.user_code.place import Place, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.python import argument_of, is_number, name_of, reads_of, uses_of, variables_of
from tb_gradflow.record.report import Edit

_MEAN = (
    "The result is the mean position under a softmax: exact if one value is far above the rest, otherwise fractional."
)
_THROUGH = "The forward values do not change; the gradient is that of the probabilities, not the derivative."
_WEIGHED = "The result is a mean of the rows, weighted by a softmax, instead of one row."
_OVER_DRAWS = "The result is the mean over all draws, weighted by their probabilities, instead of one draw."
_GUMBEL = (
    "A draw is no longer exactly one class, but a mixture close to one; a temperature below 0.5 brings it closer, but "
    "makes the gradient vary more."
)
_BETWEEN = "Values between two positions are interpolated."
_NEAR = "Values near the threshold count partially."

# With a tenth as the temperature, the largest of a few scores has nearly all of the weight.
_SHARPNESS = "0.1"

_ROUNDINGS = ("cast", "round", "floor", "ceil", "rint")


def soft_position(group: Group) -> Iterator[Candidate]:
    """For `argmax` and for an index computed from learned positions."""
    place = place_of_group(group)
    if place is None or place.library is None:
        return
    name = name_of(place.call.func) if place.call is not None else ""
    if name in ("argmax", "argmin", "categorical", "argmax_v2"):
        yield from _of_a_choice(group, place)
        yield from candidates(_WEIGHED, _embedded(group, place))
        yield from candidates(SOFT_ROWS, soft_rows(place))
    elif name == "argsort":
        yield from candidates(_SOFT_RANK, _soft_ranks(group, place))
    elif name == "top_k":
        yield from candidates(_THROUGH, _mask_of_the_largest(group, place))
    else:
        yield from _of_a_look_up(group)


_SOFT_RANK = "Values closer than about 0.3 get ranks between whole numbers; comparing all pairs takes more memory."


def _soft_ranks(group: Group, place: Place) -> Edit | None:
    """Soft ranks instead of `argsort(argsort(x))`: how many values are smaller than each, by soft steps (Qin, Liu and
    Li, 2010, https://doi.org/10.1007/s10791-009-9124-x)."""
    library, code, call, shape = place.library, place.code, place.call, _shape_given(group)
    outer = _ranking(place)
    if library is None or call is None or place.subject is None or outer is None or not shape:
        return None
    axis = argument_of(call, 1, "axis")
    last = "-1" if axis is None else ast.unparse(axis)
    if last not in ("-1", "0", str(len(shape) - 1)) or (last == "0" and len(shape) > 2):
        return None
    draft = place.draft()
    value = draft.computed_before(place.subject, "values", "scores")
    if not value:
        return None
    way = argument_of(call, 2, "direction")
    first = last == "0" and len(shape) == 2
    rows, columns = (
        (f"{value}[:, None]", f"{value}[None]") if first else (f"{value}[..., None]", f"{value}[..., None, :]")
    )
    if way is not None and ast.unparse(way).strip("'\"").upper() == "DESCENDING":
        rows, columns = columns, rows
    steps = library("sigmoid", f"({rows} - {columns}) / {_SHARPNESS}")
    soft = f"{library('sum', steps, 'axis=1' if first else 'axis=-1')} - 0.5"
    if not _made_floating(place, draft, outer):
        return None
    return draft.replace(outer, in_place_of(code, outer, soft)).edit()


def _ranking(place: Place) -> ast.Call | None:
    """The `argsort` of this `argsort`'s result, if the result has no other use."""
    code, call = place.code, place.call
    outer = code.parent(call) if call is not None else None
    statement = code.statement(call) if call is not None else None
    if call is not None and isinstance(statement, ast.Assign) and statement.value is call:
        uses = _uses(place, statement)
        outer = code.parent(uses[0]) if len(uses) == 1 else None
    if not isinstance(outer, ast.Call) or name_of(outer.func) != "argsort" or call is None:
        return None
    same = [argument_of(each, 1, "axis") for each in (call, outer)]
    written = [ast.unparse(each) if each is not None else "-1" for each in same]
    return outer if written[0] == written[1] and argument_of(outer, 2, "direction") is None else None


def _uses(place: Place, statement: ast.Assign) -> list[ast.Name]:
    return reads_of(place.code.scope(statement), *variables_of(statement))


def _made_floating(place: Place, draft: Draft, node: ast.expr) -> bool:
    """Casts the operands with which an expression that is now floating is combined, up to the cast that made it
    floating before; `False` if there is none."""
    code, library = place.code, place.library
    assert library is not None
    statement = code.statement(node)
    starts: list[ast.expr] = [node]
    if isinstance(statement, ast.Assign) and statement.value is node:
        starts = list(_uses(place, statement))
    if isinstance(statement, ast.Return) and statement.value is node:
        return _is_cast_by_callers(place, code.function(node))
    for start in starts:
        inner: ast.AST = start
        for outer in code.around(start):
            if isinstance(outer, ast.Call) and name_of(outer.func) == "cast":
                break
            parts = [outer.left, outer.right] if isinstance(outer, ast.BinOp) else []
            parts = list(outer.args) if isinstance(outer, ast.Call) else parts
            if not parts or isinstance(outer, ast.stmt):
                return False
            for part in parts:
                if part is not inner and not is_number(part):
                    draft.replace(part, library("cast", code.written(part), library.dtype("float32")))
            inner = outer
    return bool(starts)


def _is_cast_by_callers(place: Place, function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> bool:
    """Whether each call of a function casts its result, and nothing else has the function."""
    if function is None:
        return False
    passages = place.program.of_file(place.source.file)
    uses = [(code, use) for code in passages for use in uses_of(code.tree, function.name)]
    calls = [(code, code.parent(use)) for code, use in uses]
    return bool(calls) and all(
        isinstance(call, ast.Call)
        and name_of(call.func) == function.name
        and isinstance(outer := code.parent(call), ast.Call)
        and name_of(outer.func) == "cast"
        for code, call in calls
    )


def _of_a_choice(group: Group, place: Place) -> Iterator[Candidate]:
    part = discrete_part(group.suspect)
    consumers = {use.consumer for use in part.uses}
    kinds = {group.trace.ops[op].type for op in consumers}
    if kinds == {"Cast"} and not {"FloorDiv", "FloorMod"}.isdisjoint(group.trace.ops[op].type for op in part.ops):
        yield from candidates(_MEAN, _mean_row_and_column(group, place))
        return
    if len(consumers) != 1:
        return
    back = place_of_group(group, next(iter(consumers)))
    if back is None or back.code is not place.code or back.node is None or place.node is None:
        return
    if place.code.function(place.node) is not place.code.function(back.node):
        yield from candidates(_CHOSEN, _chosen_in_another_method(group, place, back, frozenset(part.ops)))
        return
    made_of = {group.trace.ops[op].type for op in part.ops}
    if kinds == {"OneHot"} and is_at_limits_of_logarithm(group.suspect, next(iter(consumers))):
        yield from candidates(_SOFT, _soft_instead(group, place, back))
    elif kinds == {"OneHot"}:
        yield from candidates(_THROUGH, _one_hot(group, place, back))
        yield from candidates(_GUMBEL, _gumbel(group, place, back))
    elif kinds == {"Cast"} and made_of <= {"ArgMax", "ArgMin", "Cast"}:
        yield from candidates(_MEAN, _mean_position(group, place, back))
    elif kinds == {"Cast"} and made_of <= {"ArgMax", "ArgMin", *_ARITHMETIC}:
        yield from candidates(_MEAN, _mean_in_arithmetic(group, place, back))
    elif kinds <= {"GatherV2", "ResourceGather"}:
        cost = _OVER_DRAWS if place.call is not None and name_of(place.call.func) == "categorical" else _WEIGHED
        yield from candidates(cost, _weighed_rows(group, place, back))


_SOFT = "The loss gets probabilities: take the index of the largest where you predict, or in a metric."


def _soft_instead(group: Group, place: Place, back: Place) -> Edit | None:
    """The scores in front of a cross-entropy, which clips one-hot vectors: no gradient passes its limits."""
    given = place.subject
    if given is None or back.node is None or place.library is None or _shape_made(group) != _shape_given(group):
        return None
    if place.call is None or name_of(place.call.func) != "argmax" or place.call not in ast.walk(back.node):
        return None
    soft = place.code.written(given)
    if not are_probabilities(group.suspect):
        soft = place.library("softmax", soft, "axis=-1")
    return place.draft().replace(back.node, soft).edit()


_CHOSEN = f"{_THROUGH} Other code that uses the choice gets a one-hot vector instead of an index."


def _chosen_in_another_method(group: Group, place: Place, back: Place, made: frozenset[int]) -> Edit | None:
    """For one function that returns `argmax(scores)`, and another that makes a one-hot vector of it or looks up a row:
    the first returns a straight-through one-hot vector, which the second uses directly."""
    library, call, code, scores = place.library, place.call, place.code, _shape_given(group)
    if library is None or call is None or place.subject is None or not scores or not _is_last_axis(place, len(scores)):
        return None
    ops, consumers = group.trace.ops, group.suspect.topology.consumers
    users = {user for op in made for user, _ in consumers[op]} - made
    if len(users) != 1 or not {ops[op].type for op in made} <= {"ArgMax", "ArgMin", "Cast", "Identity"}:
        return None
    statement = code.statement(call)
    if not _is_returned(place, call) or statement is None or not code.starts_a_line(statement):
        return None
    taken = _taken_instead(back)
    if taken is None:
        return None
    draft = place.draft()
    value = draft.computed_before(place.subject, "scores", "logits")
    if not value:
        return None
    sign = "-" if name_of(call.func) == "argmin" else ""
    soft = value
    if sign or not are_probabilities(group.suspect):
        soft = draft.free_name(call, "soft", "probabilities")
        draft.insert_before(statement, f"{soft} = {library('softmax', f'{sign}{value}', 'axis=-1')}")
    index = code.written(call)
    if value != code.written(place.subject):
        index = index.replace(code.written(place.subject), value)
    size = f"{value}.shape[-1]" if scores[-1] > 0 else library.size(value, "-1")
    hard = library("one_hot", index, size, f"dtype={value}.dtype")
    through = f"{soft} + {library('stop_gradient', f'{hard} - {soft}')}"
    draft.replace(call, in_place_of(code, call, through))
    return draft.replace(*taken).edit()


def _is_last_axis(place: Place, rank: int) -> bool:
    axis = place.argument(1, "axis") or place.argument(1, "dimension")
    if axis is None:
        return rank == 1
    return ast.unparse(axis) in ("-1", str(rank - 1))


def _is_returned(place: Place, call: ast.Call) -> bool:
    """Whether the result of a call is only returned by its function."""
    code = place.code
    statement, function = code.statement(call), code.function(call)
    if isinstance(statement, ast.Return):
        return statement.value is call
    if not isinstance(statement, ast.Assign) or statement.value is not call or function is None:
        return False
    names = variables_of(statement)
    uses, read = uses_of(function, *names), reads_of(function, *names)
    return len(names) == 1 and len(uses) == 2 and len(read) == 1 and isinstance(code.parent(read[0]), ast.Return)


def _taken_instead(back: Place) -> tuple[ast.expr, str] | None:
    """The call that took an index, and its replacement that takes a one-hot vector."""
    code, call, library = back.code, back.call, back.library
    if call is None or library is None or argument_of(call, -1, "batch_dims") is not None:
        return None
    kind = name_of(call.func)
    index = argument_of(call, 0, "indices") or argument_of(call, -1, "x") if kind == "one_hot" else None
    table = _table(call) if kind in ("gather", "take", "embedding_lookup") else None
    if table is not None:
        index = argument_of(call, 1, "indices") or argument_of(call, 1, "ids")
    if index is None or (kind == "one_hot" and not _is_one_hot_last(call)):
        return None
    if isinstance(index, ast.Name):
        if len(reads_of(code.function(call) or code.tree, index.id)) != 1:
            return None
    elif not isinstance(index, (ast.Call, ast.Attribute)):
        return None
    written = code.written(index)
    if table is None:
        return call, written
    return call, library("tensordot", written, code.written(table), "axes=1")


def _is_one_hot_last(call: ast.Call) -> bool:
    axis = argument_of(call, -1, "axis")
    plain = {each.arg for each in call.keywords} <= {"indices", "x", "depth", "num_classes", "axis", "dtype"}
    return plain and len(call.args) <= 2 and (axis is None or ast.unparse(axis) == "-1")


_ARITHMETIC = ("Sub", "AddV2", "Add", "Mul", "Neg", "Abs", "Maximum", "Minimum")


def _weights(group: Group, library: Library, call: ast.Call, value: str, operand: str, axis: str = "-1") -> str:
    """What replaces `argmax`: a softmax, of the negative for `argmin`; or the value itself if it is a softmax."""
    is_largest = name_of(call.func) != "argmin"
    if is_largest and are_probabilities(group.suspect):
        return value
    return library("softmax", f"{'' if is_largest else '-'}{operand} / {_SHARPNESS}", f"axis={axis}")


def _mean_position(group: Group, place: Place, back: Place) -> Edit | None:
    draft = place.draft()
    mean = _mean(group, place, draft)
    if mean is None or back.node is None or place.call is None:
        return None
    return draft.replace(back.node, mean).edit()


def _mean_row_and_column(group: Group, place: Place) -> Edit | None:
    """For the position of the largest pixel of a flat image, of which only `position // width` and `position % width`
    are used: the means of both."""
    code, library, call, given = place.code, place.library, place.call, place.subject
    statement = code.statement(call) if call is not None else None
    if library is None or call is None or given is None or (axis := _axis_of_choice(place)) is None:
        return None
    if not isinstance(statement, ast.Assign) or statement.value is not call or not code.starts_a_line(statement):
        return None
    parts = [code.parent(each) for each in _uses(place, statement)]
    draft = place.draft()
    value = draft.computed_before(given, "scores", "logits")
    if not value or not parts:
        return None
    weights = draft.free_name(call, "weights", "soft")
    positions = library("arange", library.size(value, axis))
    name = code.written(statement.targets[0])
    for part in parts:
        is_part = isinstance(part, ast.BinOp) and isinstance(part.op, (ast.FloorDiv, ast.Mod))
        if (
            not isinstance(part, ast.BinOp)
            or not is_part
            or code.written(part.left) != name
            or not is_plain(part.right)
        ):
            return None
        sign = "//" if isinstance(part.op, ast.FloorDiv) else "%"
        which = library("cast", f"{positions} {sign} {code.written(part.right)}", f"{value}.dtype")
        draft.replace(part, library("tensordot", weights, which, f"axes=[[{axis}], [0]]"))
    soft = _weights(group, library, call, value, value, axis)
    return draft.replace(statement, f"{weights} = {soft}").edit()


def _axis_of_choice(place: Place) -> str | None:
    """The axis of an `argmax`, as written; `None` if it is over all elements."""
    given = place.argument(1, "axis")
    if given is not None:
        return place.code.written(given)
    return None if place.library is None or place.library.is_keras else "0"


def _mean(group: Group, place: Place, draft: Draft) -> str | None:
    """The mean position under a softmax; the draft gets the statements that it needs before it."""
    library, call, given = place.library, place.call, place.subject
    if library is None or call is None or given is None or (axis := _axis_of_choice(place)) is None:
        return None
    value = draft.computed_before(given, "scores", "logits")
    if not value:
        return None
    weights = _weights(group, library, call, value, value, axis)
    positions = library("cast", library("arange", library.size(value, axis)), f"{value}.dtype")
    return library("tensordot", weights, positions, f"axes=[[{axis}], [0]]")


def _mean_in_arithmetic(group: Group, place: Place, back: Place) -> Edit | None:
    """For a position that is used in arithmetic before it is cast to floating point: does all of it in floating
    point."""
    code, library, call = place.code, place.library, place.call
    if library is None or call is None or back.node is None or call not in ast.walk(back.node):
        return None
    draft = place.draft()
    mean = _mean(group, place, draft)
    if mean is None:
        return None
    draft.replace(call, in_place_of(code, call, mean))
    inner: ast.AST = call
    for outer in itertools.takewhile(lambda each: each is not back.node, code.around(call)):
        parts = [outer.left, outer.right] if isinstance(outer, ast.BinOp) else []
        parts = list(outer.args) if isinstance(outer, ast.Call) else parts
        if not parts and not isinstance(outer, ast.UnaryOp):
            return None
        for part in parts:
            if part is not inner and not is_number(part):
                draft.replace(part, library("cast", code.written(part), library.dtype("float32")))
        inner = outer
    return draft.edit()


def _mask_of_the_largest(group: Group, place: Place) -> Edit | None:
    """`reduce_sum(one_hot(top_k(scores).indices))`, with the gradient of a softmax of the scores."""
    library, given, topology = place.library, place.subject, group.suspect.topology
    influence = topology.influence(group.suspect.target).hops
    hot = {op for op, _ in topology.consumers[group.culprit] if influence[op] >= 0}
    if library is None or given is None or {group.trace.ops[op].type for op in hot} != {"OneHot"} or len(hot) != 1:
        return None
    number = hot.pop()
    back = place_of_group(group, number)
    if back is None or back.node is None or back.code is not place.code:
        return None
    code, total = back.code, back.code.parent(back.node)
    sums = [op for op, _ in topology.consumers[number] if group.trace.ops[op].type == "Sum"]
    if len(sums) != 1 or not isinstance(total, ast.Call) or name_of(total.func) not in ("reduce_sum", "sum"):
        return None
    outputs = group.trace.ops[sums[0]].outputs
    if not outputs or outputs[0].shape != _shape_given(group):
        return None
    if code.function(total) is not (code.function(place.node) if place.node is not None else None):
        return None
    draft = place.draft()
    value = draft.computed_before(given, "scores", "logits")
    statement = code.statement(total)
    if not value or statement is None or not code.is_evaluated_once(total) or not code.starts_a_line(statement):
        return None
    if value != code.written(given):
        draft.replace(given, value)
    name = draft.free_name(total, "soft", "probabilities")
    draft.insert_before(statement, f"{name} = {library('softmax', value, 'axis=-1')}")
    through = f"{name} + {library('stop_gradient', f'{code.written(total)} - {name}')}"
    return draft.replace(total, in_place_of(code, total, through)).edit()


def _gumbel(group: Group, place: Place, back: Place) -> Edit | None:
    """A relaxed draw, spread over the classes: Jang, Gu and Poole, and Maddison, Mnih and Teh,
    https://arxiv.org/abs/1611.00712."""
    library, given, call = place.library, place.subject, place.call
    if library is None or library.prefix == "math" or given is None or back.node is None:
        return None
    if call is None or name_of(call.func) != "categorical":
        return None
    made, scores, number = _shape_made(group), _shape_given(group), argument_of(call, 1, "num_samples")
    # One distribution may be drawn from several times: one row of scores for all draws.
    if made != scores and (not made or not scores or number is None or not is_plain(number)):
        return None
    if made != scores and (len(made or ()) != 2 or scores != (1, *(made or ())[1:])):
        return None
    draft = place.draft()
    value = draft.computed_before(given, "logits", "scores")
    statement = back.statement
    if not value or statement is None or not back.code.is_evaluated_once(back.node):
        return None
    if not back.code.starts_a_line(statement):
        return None
    if value != place.code.written(given) and call not in ast.walk(back.node):
        draft.replace(given, value)
    noise = draft.free_name(back.node, "u", "noise")
    shape = library("shape", value)
    if made != scores and number is not None:
        shape = f"[{place.code.written(number)}, {library.size(value, '-1')}]"
    numbers = [shape, "1e-6", "1.0 - 1e-6"]
    random = f"{library.prefix}.random"
    if library.is_keras:
        random = place.code.written(call.func).rpartition(".")[0]
        numbers += [f"seed={place.code.written(each.value)}" for each in call.keywords if each.arg == "seed"]
    if not random:
        return None
    draft.insert_before(statement, f"{noise} = {random}.uniform({', '.join(numbers)})")
    logarithm = library("log", f"-{library('log', noise)}")
    spread = f"({value} - {logarithm}) / 0.5"
    return draft.replace(back.node, library("softmax", spread, "axis=-1")).edit()


def _one_hot(group: Group, place: Place, back: Place) -> Edit | None:
    """A straight-through one-hot vector: Jang, Gu and Poole, https://arxiv.org/abs/1611.01144."""
    library, given = place.library, place.subject
    if library is None or given is None or back.node is None or place.call is None:
        return None
    made, scores = _shape_made(group), _shape_given(group)
    if made is None or scores is None or made != scores:
        return None
    draft = place.draft()
    sign = "-" if name_of(place.call.func) == "argmin" else ""
    are_soft = not sign and are_probabilities(group.suspect)
    value = draft.computed_before(given, *(("soft", "probabilities") if are_soft else ("scores", "logits")))
    if not value:
        return None
    hard = back.code.written(back.node)
    if value != place.code.written(given):
        if place.call in ast.walk(back.node):
            hard = hard.replace(place.code.written(given), value)
        else:
            draft.replace(given, value)
    statement = back.statement
    if statement is None or not back.code.is_evaluated_once(back.node) or not back.code.starts_a_line(statement):
        return None
    name = value
    if not are_soft:
        name = draft.free_name(back.node, "soft", "probabilities")
        draft.insert_before(statement, f"{name} = {library('softmax', f'{sign}{value}', 'axis=-1')}")
    through = f"{name} + {library('stop_gradient', f'{hard} - {name}')}"
    return draft.replace(back.node, in_place_of(back.code, back.node, through)).edit()


def _shape_made(group: Group) -> tuple[int, ...] | None:
    outputs = group.trace.ops[discrete_part(group.suspect).uses[0].consumer].outputs
    return outputs[0].shape if outputs else None


def _shape_given(group: Group) -> tuple[int, ...] | None:
    inputs = group.trace.ops[group.culprit].inputs
    edge = next((each for each in inputs if each.input == 0 and each.op >= 0), None)
    outputs = group.trace.ops[edge.op].outputs if edge is not None else ()
    return outputs[edge.output].shape if edge is not None and edge.output < len(outputs) else None


def _weighed_rows(group: Group, place: Place, back: Place) -> Edit | None:
    """A row looked up by `argmax`."""
    library, given = place.library, place.subject
    if library is None or given is None or not isinstance(back.node, ast.Call):
        return None
    table, call = _table(back.node), place.call
    if table is None or call is None or argument_of(back.node, -1, "batch_dims") is not None:
        return None
    draft, value = place.draft(), place.code.written(given)
    weights = _weights(group, library, call, value, place.code.operand(given))
    if name_of(call.func) == "categorical":
        samples = argument_of(call, 1, "num_samples")
        if not isinstance(samples, ast.Constant) or samples.value != 1:
            return None
        weights = library("softmax", value, "axis=-1")
    product = library("tensordot", weights, back.code.written(table), "axes=1")
    return draft.replace(back.node, product).edit()


def _embedded(group: Group, place: Place) -> Edit | None:
    """For a choice that is passed to an `Embedding` layer: the mean of the layer's rows."""
    library, call, code = place.library, place.call, place.code
    statement = place.statement
    if library is None or call is None or place.subject is None or name_of(call.func) == "categorical":
        return None
    names = {"": call} if statement is None else {code.written(call): call}
    if isinstance(statement, ast.Assign) and statement.value is call and isinstance(statement.targets[0], ast.Name):
        names[statement.targets[0].id] = call
    users = [
        node
        for node in ast.walk(code.function(call) or code.tree)
        if isinstance(node, ast.Call) and len(node.args) == 1 and code.written(node.args[0]) in names
    ]
    layers = {
        each.written(target)
        for each in place.program.of_file(place.source.file)
        for node in ast.walk(each.tree)
        if isinstance(node, ast.Assign)
        for target, value in _assigned(node)
        if isinstance(value, ast.Call) and name_of(value.func) == "Embedding"
    }
    layer = code.written(users[0].func) if len(users) == 1 else ""
    if layer not in layers:
        return None
    weights = _weights(group, library, call, code.written(place.subject), code.operand(place.subject))
    # Not its variable: only a call creates it.
    rows = f"{layer}({library('arange', f'{layer}.input_dim')})"
    return place.draft().replace(users[0], library("tensordot", weights, rows, "axes=1")).edit()


def _assigned(statement: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """Each target of an assignment with its value: `a, b = c, d` has two."""
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return [*zip(target.elts, value.elts, strict=True)]
    return [(target, value)]


def _table(look_up: ast.Call) -> ast.expr | None:
    """The table from which a look-up takes rows; `None` if it takes something other than rows."""
    axis = argument_of(look_up, 2, "axis") if name_of(look_up.func) == "take" else argument_of(look_up, -1, "axis")
    rows = axis is None or (isinstance(axis, ast.Constant) and axis.value == 0)
    # `keras.ops.take` without an axis indexes the flattened table.
    if name_of(look_up.func) == "take" and axis is None:
        return None
    return argument_of(look_up, 0, "params") or argument_of(look_up, -1, "x") if rows else None


def _of_a_look_up(group: Group) -> Iterator[Candidate]:
    """`tf.gather(table, tf.cast(position, tf.int32))`, interpolated between two rows."""
    part = discrete_part(group.suspect)
    consumers = {use.consumer for use in part.uses}
    kinds = {group.trace.ops[op].type for op in consumers}
    if len(consumers) != 1 or not kinds <= {"GatherV2", "ResourceGather", "GatherNd", "ResourceGatherNd"}:
        return
    place = place_of_group(group)
    back = place_of_group(group, next(iter(consumers)))
    if place is None or back is None or not isinstance(back.node, ast.Call) or place.library is None:
        return
    if place.code is not back.code or place.subject is None or place.node is None:
        return
    if place.code.function(place.node) is not place.code.function(back.node):
        return
    if name_of_call(place.node) in _ROUNDINGS:
        position = place.code.written(place.subject)
        if name_of(back.node.func) == "gather_nd":
            yield from candidates(_BETWEEN_FOUR, _interpolated_in_a_plane(group, back, back.node, position))
        else:
            yield from candidates(_BETWEEN, _interpolated(place, back, back.node, position))
    elif name_of_call(place.node) in ("searchsorted", "bucketize", "digitize"):
        below = _number_below(place)
        if below is not None:
            yield from candidates(f"{_NEAR} {_BETWEEN}", _interpolated(place, back, back.node, below))


def _number_below(place: Place) -> str | None:
    """The number of edges below a value, by soft steps."""
    library, call, code = place.library, place.call, place.code
    if library is None or call is None:
        return None
    first = name_of(call.func) == "searchsorted"
    edges = argument_of(call, 0, "sorted_sequence") if first else argument_of(call, 1, "bins")
    values = argument_of(call, 1, "values") if first else argument_of(call, 0, "x")
    if edges is None or values is None:
        return None
    far = f"({code.operand(values)}[..., None] - {code.operand(edges)}) / 0.1"
    return library("sum", library("sigmoid", far), "axis=-1")


def _interpolated(place: Place, back: Place, look_up: ast.Call, position: str) -> Edit | None:
    library, code = place.library, back.code
    table, statement = _table(look_up), back.statement
    if library is None or table is None or statement is None:
        return None
    indices = argument_of(look_up, 1, "indices")
    if not code.is_evaluated_once(look_up) or not code.starts_a_line(statement) or indices is None:
        return None
    draft = back.draft()
    lines = []
    if "(" in position:
        name = draft.free_name(look_up, "position", "place")
        lines.append(f"{name} = {position}")
        position = name
    low, share = draft.free_name(look_up, "low", "lower"), draft.free_name(look_up, "share", "fraction")
    rows = code.operand(table)
    integer = '"int32"' if library.is_keras else f"{library.prefix}.int32"
    last = f"{library('shape', rows)}[0]"
    at = library("clip", library("cast", library("floor", position), integer), "0", f"{last} - 2")
    lines.append(f"{low} = {at}")
    lines.append(f"{share} = {position} - {library('cast', low, library.dtype('float32'))}")
    draft.insert_before(statement, *lines)
    name, axis = code.written(look_up.func), ", axis=0" if name_of(look_up.func) == "take" else ""
    shares = share if _rank(back.group) == 1 else f"{share}[..., {library.prefix}.newaxis]"
    if library.is_keras and shares != share:
        shares = f"{share}[..., None]"
    blended = f"(1.0 - {shares}) * {name}({rows}, {low}{axis}) + {shares} * {name}({rows}, {low} + 1{axis})"
    return draft.replace(look_up, in_place_of(code, look_up, blended)).edit()


_BETWEEN_FOUR = "Values between four positions are interpolated, linearly in both directions."


def _interpolated_in_a_plane(group: Group, back: Place, look_up: ast.Call, position: str) -> Edit | None:
    """`tf.gather_nd(picture, tf.cast(position, tf.int32))` with positions of two numbers each."""
    library, code, statement = back.library, back.code, back.statement
    table, indices = argument_of(look_up, 0, "params"), argument_of(look_up, 1, "indices")
    shape, made = _shape_given(group), _shape_made(group)
    extra = len(made) - len(shape) + 1 if made is not None and shape else -1
    if library is None or library.is_keras or table is None or indices is None or statement is None:
        return None
    if not shape or shape[-1] != 2 or extra < 0 or argument_of(look_up, -1, "batch_dims") is not None:
        return None
    if not code.is_evaluated_once(look_up) or not code.starts_a_line(statement):
        return None
    draft, tf, rows = back.draft(), library.prefix, code.operand(table)
    low, share = draft.free_name(look_up, "low", "lower"), draft.free_name(look_up, "share", "fraction")
    lines = []
    if "(" in position or " " in position:
        name = draft.free_name(look_up, "position", "place")
        lines.append(f"{name} = {position}")
        position = name
    last = f"{library('shape', rows)}[:2] - 2"
    at = library("clip", library("cast", library("floor", position), f"{tf}.int32"), "0", last)
    lines += [f"{low} = {at}", f"{share} = {position} - {library('cast', low, f'{position}.dtype')}"]
    name = draft.free_name(look_up, "beside", "corner")
    lines.append(f"{name} = lambda i, j: {code.written(look_up.func)}({rows}, {low} + [i, j])")
    draft.insert_before(statement, *lines)
    axes = f", {tf}.newaxis" * extra
    across, down = (f"{share}[..., {axis}{axes}]" for axis in (1, 0))
    upper, lower = (f"(1.0 - {across}) * {name}({row}, 0) + {across} * {name}({row}, 1)" for row in (0, 1))
    blended = f"(1.0 - {down}) * ({upper}) + {down} * ({lower})"
    return draft.replace(look_up, in_place_of(code, look_up, blended)).edit()


def _rank(group: Group) -> int:
    """The rank of the table that is looked up: one more than the rank of a single position, for its rows."""
    part = discrete_part(group.suspect)
    op = group.trace.ops[part.uses[0].consumer]
    if op.reads is not None:
        return len(group.trace.variables[op.reads].shape)
    edge = next((each for each in op.inputs if each.input == 0 and each.op >= 0), None)
    outputs = group.trace.ops[edge.op].outputs if edge is not None else ()
    shape = outputs[edge.output].shape if edge is not None and edge.output < len(outputs) else None
    return len(shape) if shape is not None else 0


def _soft_histogram(place: Place) -> Edit | None:
    """Shares each value between the two nearest bin centres, by its distance from them."""
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


_RIGHT = "The result is the probability of the right class, instead of whether that class is the most probable one."


def probability_of_the_label(group: Group) -> Iterator[Candidate]:
    """`equal(argmax(scores, -1), labels)` cast to a number: the probability of the label under a softmax of the
    scores."""
    place = place_of_group(group)
    if place is None or place.library is None or place.node is None:
        return
    compared = _comparison_around(place.code, place.node)
    if compared is None and isinstance(statement := place.statement, ast.Assign):
        uses = _uses(place, statement)
        compared = _comparison_around(place.code, uses[0]) if len(uses) == 1 else None
    if compared is not None:
        yield from candidates(_RIGHT, _probability_at(place, compared))


def _comparison_around(code: Code, node: ast.expr) -> ast.expr | None:
    """The test for equality that contains an expression."""
    inside = itertools.takewhile(lambda each: isinstance(each, ast.expr), (node, *code.around(node)))
    return next((each for each in inside if isinstance(each, ast.expr) and _is_equality(each)), None)


def _is_equality(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq)
    return isinstance(node, ast.Call) and name_of(node.func) == "equal" and len(node.args) == 2


def _probability_at(place: Place, compared: ast.expr) -> Edit | None:
    code, library = place.code, place.library
    assert library is not None
    if isinstance(compared, ast.Compare):
        sides = [compared.left, compared.comparators[0]]
    else:
        assert isinstance(compared, ast.Call)
        sides = list(compared.args)
    made = [_bare_argmax(code, each) for each in sides]
    chosen = [each for each in made if each is not None]
    if not chosen or (place.call not in chosen and place.node is not compared):
        return None
    # If there are two, the culprit is that of the scores; the other is that of one-hot labels.
    of_scores = place.call if place.call in chosen else chosen[0]
    if of_scores is None or (len(chosen) == 2 and place.call not in chosen):
        return None
    scores, axis = of_scores.args[0], argument_of(of_scores, 1, "axis")
    other, of_labels = next(pair for pair in zip(sides, made, strict=True) if pair[1] is not of_scores)
    if axis is None or ast.unparse(axis) not in ("-1", "1"):
        return None
    draft = place.draft()
    value = draft.computed_before(scores, "scores", "logits")
    if not value:
        return None
    if value != code.written(scores) and of_scores not in ast.walk(compared):
        draft.replace(scores, value)
    over = f"axis={code.written(axis)}"
    if of_labels is not None:
        hot = library("cast", code.written(of_labels.args[0]), f"{value}.dtype")
    else:
        # Labels are integers; floating-point labels would need a cast.
        hot = library("one_hot", library("cast", code.written(other), _integer(library)), f"{value}.shape[-1]")
    return draft.replace(compared, library("sum", f"{library('softmax', value, over)} * {hot}", over)).edit()


def _integer(library: Library) -> str:
    return '"int32"' if library.is_keras else f"{library.prefix}.int32"


def _bare_argmax(code: Code, node: ast.expr) -> ast.Call | None:
    """The `argmax` that an expression casts, or that its name stands for."""
    for made in (node, code.value_of(_bare(node))):
        bare = _bare(made)
        if isinstance(bare, ast.Call) and name_of(bare.func) == "argmax" and bare.args:
            return bare
    return None


def _bare(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and name_of(node.func) in _ROUNDINGS and node.args:
        node = node.args[0]
    return node


_SHARED = "A value counts partially in each of its two nearest bins, whose centres span the range."


def soft_count(group: Group) -> Iterator[Candidate]:
    """Histograms; and `count_nonzero(x)` and `zero_fraction(x)` by soft steps around zero."""
    place = place_of_group(group)
    if place is None or place.library is None or place.call is None or not place.call.args:
        return
    if name_of(place.call.func) == "histogram_fixed_width":
        yield from candidates(_SHARED, _soft_histogram(place))
    library = place.library
    near = library("exp", "-" + library("square", f"{place.code.operand(place.call.args[0])} / 0.1"))
    if name_of(place.call.func) == "zero_fraction":
        yield from candidates(_NEAR, place.draft().replace(place.call, library("mean", near)).edit())
    if name_of(place.call.func) != "count_nonzero":
        return
    soft = summed(place, place.call, f"1.0 - {near}")
    yield from candidates(_NEAR, place.draft().replace(place.call, soft).edit())
