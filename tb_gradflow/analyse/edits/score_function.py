"""Keeps a discrete draw as it is, and weights the loss of each row with the probability of its draw.

The weight is one, and its gradient is that of the log-probability: the score-function estimator, as Foerster et al.,
"DiCE: The infinitely differentiable Monte Carlo estimator", 2018, https://arxiv.org/abs/1802.05098, write it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tb_gradflow.analyse.graph.op_sets import MEANS
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates
from tb_gradflow.analyse.user_code.draft import Draft
from tb_gradflow.analyse.user_code.place import Place, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.python import argument_of, name_of
from tb_gradflow.record.report import Edit

_COST = (
    "The draws and the loss do not change, and the gradient is right on average over draws; it varies much more from "
    "batch to batch than the gradient of a soft choice."
)


# Ops that compute a separate result for each row of a batch, as long as the first axis stays the batch.
_BY_ROW = frozenset({
    "Abs", "Add", "AddV2", "BiasAdd", "Cast", "ConcatV2", "Elu", "Equal", "Exp", "ExpandDims", "GatherV2", "Greater",
    "GreaterEqual", "Identity", "Less", "LessEqual", "Log", "Log1p", "MatMul", "Maximum", "Mean", "Minimum", "Mul",
    "Neg", "NotEqual", "OneHot", "Pow", "RealDiv", "Relu", "Reshape", "ResourceGather", "SelectV2", "Sigmoid",
    "Softmax", "Softplus", "SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits", "Sqrt", "Square",
    "SquaredDifference", "Squeeze", "StopGradient", "StridedSlice", "Sub", "Sum", "Tanh",
})  # fmt: skip
_LINEAR = frozenset({"AddN", "AddV2", "Cast", "Identity", "Mul", "Neg", "RealDiv", "Reshape", "Squeeze", "Sub"})


def weighted_with_probability(group: Group) -> Iterator[Candidate]:
    """For a draw from a categorical distribution, or a Bernoulli draw by comparison with uniform noise, if each row of
    the batch has its own loss and the loss is their mean or sum."""
    place, total = place_of_group(group), _total(group)
    back = place_of_group(group, total) if total >= 0 else None
    if place is None or back is None or place.library is None or back.code is not place.code:
        return
    if place.node is None or place.library.is_keras or place.library.is_math or not _is_mean(back):
        return
    if place.code.function(place.node) is place.code.function(back.node or place.node):
        yield from candidates(_COST, _weighted(group, place, back, total))


def _is_mean(back: Place) -> bool:
    return back.call is not None and name_of(back.call.func) in ("reduce_mean", "reduce_sum") and bool(back.call.args)


def _total(group: Group) -> int:
    """The op that takes the mean or the sum of the losses of the draws; -1 if rows are combined before it, or if what
    follows is not linear in it."""
    ops, topology = group.trace.ops, group.suspect.topology
    if group.suspect.target < 0:
        return -1
    way = topology.influence(group.suspect.target).from_op(group.culprit)
    rows = _rows(group)
    for number, op in enumerate(way[1:], start=1):
        given = _shape_of_input(group, way[number - 1], op)
        if ops[op].type in MEANS and given is not None and given in (rows, (*rows, 1)) and _shape_of(group, op) == ():
            # All paths from the draw to the loss must pass through it.
            around = topology.reached_from([group.culprit]) & topology.leading_to([way[-1]])
            inside = topology.leading_to([op]) & around
            behind = around - inside
            is_by_row = all(_is_by_row(group, each, inside, rows) for each in inside - {op, group.culprit})
            is_linear = all(ops[each].type in _LINEAR for each in behind)
            is_alone = all(user in inside for each in inside - {op} for user in _users(group, each, around))
            return op if is_by_row and is_linear and is_alone else -1
    return -1


def _is_by_row(group: Group, op: int, inside: set[int], rows: tuple[int, ...]) -> bool:
    """Whether each row of an op's output depends only on the same row of the batch, judging by its type and shape."""
    each, shape = group.trace.ops[op], _shape_of(group, op)
    if each.type not in _BY_ROW or not shape or shape[:1] != rows:
        return False
    return each.type != "MatMul" or not any(edge.input == 1 and edge.op in inside for edge in each.inputs)


def _users(group: Group, op: int, among: set[int]) -> list[int]:
    return [user for user, _ in group.suspect.topology.consumers[op] if user in among]


def _rows(group: Group) -> tuple[int, ...]:
    """The number of rows of the draw; for a categorical distribution, the second axis counts the draws."""
    shape = _shape_of(group, group.culprit)
    return shape[:1] if shape else ()


def _shape_of(group: Group, op: int) -> tuple[int, ...] | None:
    outputs = group.trace.ops[op].outputs
    return outputs[0].shape if outputs else None


def _shape_of_input(group: Group, made: int, op: int) -> tuple[int, ...] | None:
    edge = next((each for each in group.trace.ops[op].inputs if each.op == made), None)
    outputs = group.trace.ops[made].outputs
    return outputs[edge.output].shape if edge is not None and edge.output < len(outputs) else None


def _weighted(group: Group, place: Place, back: Place, total: int) -> Edit | None:
    code, statement, draft = place.code, back.statement, place.draft()
    assert place.node is not None and back.call is not None and place.library is not None
    if statement is None or not code.is_evaluated_once(back.call) or not code.starts_a_line(statement):
        return None
    drawn = _kept(place, draft)
    lines = _log_probability(place, drawn, draft) if drawn else []
    if not lines:
        return None
    score = draft.free_name(place.node, "log_probability", "log_prob")
    weight = draft.free_name(place.node, "weight", "score")
    lines = [*lines[:-1], f"{score} = {lines[-1]}"]
    stopped = place.library("stop_gradient", score)
    lines.append(f"{weight} = {place.library('exp', f'{score} - {stopped}')}")
    subject = back.call.args[0]
    given = code.operand(subject)
    if place.node in ast.walk(subject):
        given = given.replace(code.written(place.node), drawn)
    elif drawn != code.written(place.node):
        draft.replace(place.node, drawn)
    draft.insert_before(statement, *lines)
    spread = weight
    shape = _shape_of_input(group, _made_of_draw(group, total), total)
    if shape is not None and len(shape) == 2:
        spread = f"{weight}[:, {place.library.prefix}.newaxis]"
    return draft.replace(subject, f"{given} * {spread}").edit()


def _made_of_draw(group: Group, total: int) -> int:
    way = group.suspect.topology.influence(group.suspect.target).from_op(group.culprit)
    return way[way.index(total) - 1]


def _kept(place: Place, draft: Draft) -> str:
    """A name for the draw; empty if it cannot have one."""
    code, node = place.code, place.node
    assert node is not None
    statement = code.statement(node)
    if isinstance(statement, ast.Assign) and statement.value is node and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    if statement is None or not code.is_evaluated_once(node) or not code.starts_a_line(statement):
        return ""
    name = draft.free_name(node, "drawn", "sample")
    draft.insert_before(statement, f"{name} = {code.written(node)}")
    return name


def _log_probability(place: Place, drawn: str, draft: Draft) -> Sequence[str]:
    """The statements to insert before, and the log-probability of the draws of each row."""
    assert place.library is not None
    if place.call is not None and name_of(place.call.func) == "categorical":
        logits = argument_of(place.call, 0, "logits")
        value = draft.computed_before(logits, "logits") if logits is not None else ""
        if not value or value in draft_names(place, drawn):
            return []
        each = f"{place.library.prefix}.gather({place.library('log_softmax', value)}, {drawn}, batch_dims=1)"
        if logits is not None and value != place.code.written(logits):
            draft.replace(logits, value)
        return [place.library("sum", each, "axis=1")]
    if isinstance(place.node, ast.Compare) and len(place.node.ops) == 1:
        return _of_a_coin(place, place.node, drawn)
    return []


def draft_names(place: Place, drawn: str) -> set[str]:
    """The names that refer to the draw."""
    return {drawn} if drawn else place.code.names(place.node) if place.node is not None else set()


def _of_a_coin(place: Place, compared: ast.Compare, drawn: str) -> Sequence[str]:
    library, code = place.library, place.code
    assert library is not None
    left, right = compared.left, compared.comparators[0]
    noisy = [each for each in (left, right) if "random.uniform" in ast.unparse(each)]
    chance = next((each for each in (left, right) if each not in noisy), None)
    below = isinstance(compared.ops[0], (ast.Lt, ast.LtE))
    if len(noisy) != 1 or chance is None or isinstance(chance, ast.Constant):
        return []
    # `u < p` is true with probability p, and so is `p > u`.
    is_true_for_p = below == (noisy[0] is left)
    p = code.operand(chance)
    yes, no = library("log", f"{p} + 1e-7"), library("log", f"1.0 - {p} + 1e-7")
    each = library("where", drawn, *((yes, no) if is_true_for_p else (no, yes)))
    return [library("sum", library("reshape", each, f"[{library.size(drawn, '0')}, -1]"), "axis=1")]
