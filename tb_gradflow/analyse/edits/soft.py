"""Fixes that replace a comparison with a smooth step, and a choice with a blend."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tb_gradflow.analyse.evidence.discrete import is_compared_again
from tb_gradflow.analyse.evidence.suspects import discrete_part
from tb_gradflow.analyse.graph.op_sets import is_float
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates, in_place_of
from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.analyse.user_code.draft import Draft
from tb_gradflow.analyse.user_code.library import Library
from tb_gradflow.analyse.user_code.place import Place, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.analyse.words.soft import is_given_integers
from tb_gradflow.record.python import argument_of, is_number, name_of, uses_of, values_of, variables_of
from tb_gradflow.record.report import Edit

_COST = (
    "Values near the threshold are no longer exactly 0 or 1; a smaller width comes closer to the step, but is steeper."
)

# The width of a soft step: for values of about one, and for positions, which are one apart.
_NARROW, _WIDE = "0.1", "0.5"

_SMALLER = (ast.Lt, ast.LtE)
_LARGER = (ast.Gt, ast.GtE)
_CALLED = {
    "less": ast.Lt, "less_equal": ast.LtE, "greater": ast.Gt, "greater_equal": ast.GtE, "equal": ast.Eq,
    "not_equal": ast.NotEq,
}  # fmt: skip
_CASTS = ("cast", "astype", "to_float", "to_int32")
_ROUNDINGS = (*_CASTS, "round", "rint", "floor", "ceil")


def soft_comparison(group: Group) -> Iterator[Candidate]:
    """A soft step for a comparison that is cast to a number, or chooses between two values."""
    place = place_of_group(group)
    if place is None or place.node is None or place.library is None:
        return
    if name_of_call(place.node) == "sequence_mask":
        yield from candidates(_COST, _sequence_mask(place, group.culprit))
        return
    if not is_compared_again(group.suspect):
        yield from candidates(_COST, _softened(place))


def soft_mask(group: Group) -> Iterator[Candidate]:
    """The same for a length that is rounded before `tf.sequence_mask` compares it with positions."""
    place = place_of_group(group)
    if place is None or place.node is None or place.library is None:
        return
    mask = next((each for each in place.code.around(place.node) if name_of_call(each) == "sequence_mask"), None)
    ops, consumers = group.trace.ops, group.suspect.topology.consumers
    after = walked([group.culprit], lambda op: [user for user, _ in consumers[op]])
    compared = next((op for op in after if ops[op].type == "Less"), -1)
    if isinstance(mask, ast.Call) and compared >= 0:
        yield from candidates(_COST, _sequence_mask(replace(place, node=mask), compared))


def soft_branch(group: Group) -> Iterator[Candidate]:
    """A blend of both branches instead of `tf.cond`, or of an `if` that assigns one value or the other."""
    place = place_of_group(group)
    if place is None or place.library is None:
        return
    yield from candidates(_COST, _blended_cond(place), _blended_if(place))


@dataclass(frozen=True)
class Softener:
    """Writes conditions as numbers between 0 and 1.

    Attributes:
        place: The comparison that is the culprit.
        integers: Whether it compares integers.
    """

    place: Place
    integers: bool

    @property
    def library(self) -> Library:
        library = self.place.library
        assert library is not None
        return library

    def __call__(self, node: ast.AST) -> str | None:
        """The softened condition; `None` if it is neither a comparison nor made of comparisons."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._step(type(node.ops[0]), node.left, node.comparators[0])
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            return self._joined(isinstance(node.op, ast.BitAnd), node.left, node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self._not(node.operand)
        if isinstance(node, ast.Call):
            name = name_of(node.func)
            if name in _CALLED and len(node.args) == 2:
                return self._step(_CALLED[name], node.args[0], node.args[1])
            if name in ("logical_and", "logical_or") and len(node.args) == 2:
                return self._joined(name == "logical_and", node.args[0], node.args[1])
            if name == "logical_not" and node.args:
                return self._not(node.args[0])
            if name in _CASTS and node.args:
                return self(node.args[0])
        return None

    def _step(self, kind: type[ast.cmpop], left: ast.expr, right: ast.expr) -> str | None:
        first, second = self.side(left), self.side(right)
        width = _WIDE if self.integers else _NARROW
        if kind in (ast.Eq, ast.NotEq):
            near = self.library("exp", "-" + self.library("square", f"({first} - {second}) / 0.5"))
            return near if kind is ast.Eq else f"(1.0 - {near})"
        if kind in _SMALLER:
            first, second = second, first
        elif kind not in _LARGER:
            return None
        inside = first if second in ("0", "0.0") else f"({first} - {second})"
        inside = f"-{second}" if first in ("0", "0.0") else inside
        return self.library("sigmoid", f"{inside} / {width}")

    def side(self, node: ast.expr) -> str:
        """One side of a comparison, without rounding and in floating point."""
        code, bare = self.place.code, _without_rounding(node)
        if bare is not node or not self.integers or is_number(node):
            return code.operand(bare)
        before = _assigned_by_cast(code, node)
        if before is not None:
            return code.operand(_without_rounding(before))
        return self.library("cast", code.written(node), self.library.dtype("float32"))

    def _joined(self, both: bool, left: ast.expr, right: ast.expr) -> str | None:
        first, second = self._known(left), self._known(right)
        if first is None or second is None:
            return None
        return f"({first} * {second})" if both else f"(1.0 - (1.0 - {first}) * (1.0 - {second}))"

    def _not(self, node: ast.expr) -> str | None:
        soft = self(node)
        return f"(1.0 - {soft})" if soft is not None else None

    def _known(self, node: ast.expr) -> str | None:
        """A softened condition; or, if it cannot be softened because it depends only on data, the condition as a
        number."""
        soft = self(node)
        if soft is not None:
            return soft
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.library("cast", self.place.code.written(node), self.library.dtype("float32"))
        return None


def _softened(place: Place) -> Edit | None:
    code, library = place.code, place.library
    assert place.node is not None and library is not None
    softener = Softener(place, is_given_integers(place.group))
    root = _whole_condition(code, place.node)
    soft = softener(root)
    if soft is None:
        return None
    uses = discrete_part(place.group.suspect).uses
    kinds = {place.group.suspect.type_of(use.consumer) for use in uses}
    outer = code.parent(root)
    draft = place.draft()
    if isinstance(outer, ast.Call) and name_of(outer.func) in _CASTS:
        return draft.replace(outer, soft).edit() if _is_floating_cast(outer) else None
    if isinstance(outer, ast.Call) and name_of(outer.func) == "count_nonzero" and outer.args[:1] == [root]:
        return draft.replace(outer, summed(place, outer, soft)).edit()
    if isinstance(outer, ast.Attribute) and isinstance(code.parent(outer), ast.Call) and outer.attr in _CASTS:
        whole = code.parent(outer)
        assert whole is not None
        return draft.replace(whole, soft).edit()
    if is_choice(outer) and isinstance(outer, ast.Call) and outer.args and outer.args[0] is root:
        return _chosen_softly(place, draft, outer, soft).edit()
    if isinstance(outer, ast.Assign) and len(outer.targets) == 1 and isinstance(outer.targets[0], ast.Name):
        return _kept_under(place, draft, root, outer, outer.targets[0].id, soft)
    if kinds == {"Cast"} and isinstance(outer, ast.Return):
        return draft.replace(root, soft).edit()
    return _weighted(place, root, soft)


def summed(place: Place, count: ast.Call, soft: str) -> str:
    """The sum that takes the place of `count_nonzero`, with its other arguments."""
    code, library = place.code, place.library
    assert library is not None
    rest = [code.written(each) for each in count.args[1:]]
    rest += [f"{each.arg}={code.written(each.value)}" for each in count.keywords if each.arg not in ("dtype", "name")]
    return library("sum", soft, *rest)


def _weighted(place: Place, root: ast.expr, soft: str) -> Edit | None:
    """For `reduce_sum(boolean_mask(values, condition))`, also written `values[condition]`: all values, weighted."""
    code, library = place.code, place.library
    assert library is not None
    masked = code.parent(root)
    if isinstance(masked, ast.Call) and name_of(masked.func) == "boolean_mask" and len(masked.args) == 2:
        values = masked.args[0]
        if masked.args[1] is not root or masked.keywords:
            return None
    elif isinstance(masked, ast.Subscript) and masked.slice is root:
        values = masked.value
    else:
        return None
    draft = place.draft()
    whole, name = _reduced(code, masked)
    if whole is None or len(whole.args) != 1 or whole.keywords:
        return None
    if name is not None:
        draft.replace(masked, f"{code.operand(values)} * {soft}")
        if name_of(whole.func) in _MEANS:
            return None
        return draft.edit()
    weights = draft.free_name(masked, "weights", "soft")
    if name_of(whole.func) in _MEANS:
        statement = code.statement(whole)
        if statement is None or not code.is_evaluated_once(whole) or not code.starts_a_line(statement):
            return None
        draft.insert_before(statement, f"{weights} = {soft}")
        total = library("sum", f"{code.operand(values)} * {weights}")
        quotient = library("divide_no_nan", total, library("sum", weights))
        return draft.replace(whole, quotient).edit()
    return draft.replace(masked, in_place_of(code, masked, f"{code.operand(values)} * {soft}")).edit()


_MEANS, _SUMS = ("reduce_mean", "mean"), ("reduce_sum", "sum")


def _reduced(code: Code, masked: ast.expr) -> tuple[ast.Call | None, str | None]:
    """The sum or the mean of the selected values, and the name that they have before it; `None` if they are used
    elsewhere too."""
    outer = code.parent(masked)
    if isinstance(outer, ast.Call) and name_of(outer.func) in (*_MEANS, *_SUMS):
        return outer, None
    target = outer.targets[0] if isinstance(outer, ast.Assign) and len(outer.targets) == 1 else None
    if not isinstance(target, ast.Name):
        return None, None
    uses = [name for name in uses_of(code.scope(masked), target.id) if name is not target]
    user = code.parent(uses[0]) if len(uses) == 1 else None
    is_reduced = isinstance(user, ast.Call) and name_of(user.func) in (*_MEANS, *_SUMS)
    return (user, target.id) if isinstance(user, ast.Call) and is_reduced else (None, None)


def _kept_under(place: Place, draft: Draft, root: ast.expr, statement: ast.Assign, name: str, soft: str) -> Edit | None:
    """For a condition that has a name: each use of it must accept a number."""
    code = place.code
    scope = code.scope(statement)
    uses = uses_of(scope, name)
    stores = [code.parent(each) for each in uses if isinstance(each.ctx, ast.Store)]
    again = [each for each in stores if each is not statement and isinstance(each, ast.Assign)]
    if len(stores) - len(again) != 1 or len(again) > 1:
        return None
    if again:  # `keep = tf.cast(keep, tf.float32)`: from there on it is a number
        if again[0] not in code.block(statement) or not _is_cast_of(again[0].value, name):
            return None
        uses = [each for each in uses if each.lineno <= again[0].lineno]
    draft.replace(root, soft)
    for use in uses:
        outer = code.parent(use)
        if isinstance(use.ctx, ast.Store):
            continue
        if isinstance(outer, ast.Call) and name_of(outer.func) in _CASTS and outer.args and outer.args[0] is use:
            if not _is_floating_cast(outer):
                return None
            continue
        if isinstance(outer, ast.Attribute) and outer.attr in _CASTS:
            continue
        if is_choice(outer) and isinstance(outer, ast.Call) and outer.args and outer.args[0] is use:
            yes, no = _choices(outer)
            if yes is None or no is None:
                return None
            draft.replace(outer, in_place_of(code, outer, blend(code, name, yes, no)))
            continue
        return None
    return draft.edit()


def _is_cast_of(node: ast.expr, name: str) -> bool:
    if not isinstance(node, ast.Call) or name_of(node.func) not in _CASTS or not node.args:
        return False
    return isinstance(node.args[0], ast.Name) and node.args[0].id == name and _is_floating_cast(node)


def _chosen_softly(place: Place, draft: Draft, choice: ast.Call, soft: str) -> Draft:
    code = place.code
    yes, no = _choices(choice)
    statement = code.statement(choice)
    if yes is None or no is None or statement is None:
        return place.draft()
    gate = draft.free_name(choice, "gate", "weight", "soft")
    blended = blend(code, gate, yes, no)
    if blended.count(gate) == 1:
        whole = blended.replace(gate, soft)
        return draft.replace(choice, whole if blended == gate else in_place_of(code, choice, whole))
    if code.is_evaluated_once(choice) and code.starts_a_line(statement):
        draft.insert_before(statement, f"{gate} = {soft}")
        return draft.replace(choice, in_place_of(code, choice, blended))
    return draft.replace(choice, f"(lambda {gate}: {blended})({soft})")


def blend(code: Code, gate: str, yes: ast.expr, no: ast.expr) -> str:
    """`gate` times one value plus `1 - gate` times the other."""
    first = "" if _is(yes, 0.0) else gate if _is(yes, 1.0) else f"{gate} * {code.operand(yes)}"
    second = "" if _is(no, 0.0) else f"(1.0 - {gate})" + ("" if _is(no, 1.0) else f" * {code.operand(no)}")
    return " + ".join(filter(None, (first, second))) or f"0.0 * {gate}"


def _is(node: ast.expr, value: float) -> bool:
    number = node.value if isinstance(node, ast.Constant) else None
    return isinstance(number, (int, float)) and not isinstance(number, bool) and number == value


def is_choice(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) in ("where", "where_v2", "select", "switch")


def _choices(call: ast.Call) -> tuple[ast.expr | None, ast.expr | None]:
    yes = argument_of(call, 1, "x") or argument_of(call, -1, "x1")
    return yes, argument_of(call, 2, "y") or argument_of(call, -1, "x2")


def _whole_condition(code: Code, node: ast.expr) -> ast.expr:
    """The whole condition that contains a comparison."""
    whole, outer = node, code.parent(node)
    while isinstance(outer, ast.expr) and _is_condition(outer):
        whole, outer = outer, code.parent(outer)
    return whole


def _is_condition(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.BitAnd, ast.BitOr))
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert)
    return isinstance(node, ast.Call) and name_of(node.func) in ("logical_and", "logical_or", "logical_not")


def _is_floating_cast(call: ast.Call) -> bool:
    """Whether a cast is to a floating dtype, as far as it shows; `x.dtype` is that of a floating tensor."""
    to = argument_of(call, 1, "dtype")
    text = ast.unparse(to) if to is not None else ""
    return "int" not in text and "bool" not in text


def _without_rounding(node: ast.expr) -> ast.expr:
    """What roundings and casts are applied to. The cast to floating point stays if it is the only one: of positions,
    which are integers."""
    while (inner := _rounded(node)) is not None:
        if _rounded(inner) is None and _is_cast_to_float(node, inner):
            break
        node = inner
    return node


def _rounded(node: ast.expr) -> ast.expr | None:
    """The argument of a rounding or a cast; `None` of everything else."""
    if not isinstance(node, ast.Call) or name_of(node.func) not in _ROUNDINGS:
        return None
    if isinstance(node.func, ast.Attribute) and (node.func.attr == "astype" or not (node.args or node.keywords)):
        return node.func.value
    return argument_of(node, 0, "x")


def _is_cast_to_float(node: ast.expr, given: ast.expr) -> bool:
    rest = ast.unparse(node).replace(ast.unparse(given), "", 1)
    return name_of_call(node) in _CASTS and "int" not in rest and "bool" not in rest


def _assigned_by_cast(code: Code, node: ast.expr) -> ast.expr | None:
    """The value that a statement of the same function assigns to a name, if it is a rounding or a cast; otherwise
    `None`."""
    if not isinstance(node, ast.Name):
        return None
    given = values_of(code.scope(node), node.id)
    rounded = [each for each in given if _without_rounding(each) is not each]
    return rounded[0] if len(given) == len(rounded) == 1 else None


def name_of_call(node: ast.AST | None) -> str:
    return name_of(node.func) if isinstance(node, ast.Call) else ""


def _sequence_mask(place: Place, compared: int) -> Edit | None:
    """A smooth `tf.sequence_mask`: about 1 below the length and about 0 above it. `compared` is its comparison."""
    call, library = place.call, place.library
    assert call is not None and library is not None
    lengths, most = place.argument(0, "lengths"), place.argument(1, "maxlen")
    outer = place.code.parent(call)
    dtype = place.argument(2, "dtype")
    if dtype is None and isinstance(outer, ast.Call) and name_of_call(outer) == "cast" and call in outer.args[:1]:
        dtype = argument_of(outer, 1, "dtype")
    if lengths is None or most is None or dtype is None or not _becomes_float(place.group, compared):
        return None
    tf, given = library.prefix, place.code.operand(_without_rounding(lengths))
    positions = f"{tf}.range({tf}.cast({place.code.written(most)}, {place.code.written(dtype)}))"
    scalar = _rank_of_length(place.group, compared) == 0
    length = given if scalar else f"{given}[..., {tf}.newaxis]"
    return place.draft().replace(call, f"{tf}.sigmoid(({length} - 0.5 - {positions}) / {_WIDE})").edit()


def _becomes_float(group: Group, compared: int) -> bool:
    """Whether the mask is converted to numbers that have a gradient."""
    ops, users = group.trace.ops, [user for user, _ in group.suspect.topology.consumers[compared]]
    made = [tensor.dtype for user in users if ops[user].type == "Cast" for tensor in ops[user].outputs]
    return bool(made) and all(map(is_float, made))


def _rank_of_length(group: Group, compared: int) -> int:
    """The rank of the lengths: one less than that of the mask."""
    outputs = group.trace.ops[compared].outputs
    shape = outputs[0].shape if outputs else None
    return len(shape) - 1 if shape else 0


def _blended_cond(place: Place) -> Edit | None:
    """`tf.cond(x < t, one, other)` as a blend of both."""
    code, library = place.code, place.library
    assert library is not None
    statement = place.statement
    if statement is None:
        return None
    calls = [
        node
        for node in ast.walk(code.function(statement) or statement)
        if isinstance(node, ast.Call) and name_of(node.func) == "cond"
    ]
    condition = place.node
    for call in calls:
        predicate = argument_of(call, 0, "pred")
        yes, no = argument_of(call, 1, "true_fn"), argument_of(call, 2, "false_fn")
        if predicate is None or yes is None or no is None:
            continue
        soften = Softener(place, is_given_integers(place.group))
        if condition is not None and condition in ast.walk(predicate):
            soft = soften(predicate)
        else:
            named = _named_condition(code, condition, predicate)
            if named is None:
                continue
            return _cond_of_a_name(place, call, named, soften)
        results = [_result(code, each) for each in (yes, no)]
        outer = code.statement(call)
        if soft is None or None in results or outer is None:
            return None
        gate = code.free_name(call, "gate", "weight", "soft")
        blended = f"{gate} * {results[0]} + (1.0 - {gate}) * {results[1]}"
        draft = place.draft()
        if code.is_evaluated_once(call) and code.starts_a_line(outer):
            draft.insert_before(outer, f"{gate} = {soft}")
            return draft.replace(call, in_place_of(code, call, blended)).edit()
        return draft.replace(call, f"(lambda {gate}: {blended})({soft})").edit()
    return None


def _named_condition(code: Code, condition: ast.expr | None, predicate: ast.expr) -> ast.Assign | None:
    """The statement that assigns the name of the condition that chooses between the branches."""
    statement = code.statement(condition) if condition is not None else None
    if not isinstance(statement, ast.Assign) or not isinstance(predicate, ast.Name):
        return None
    uses = uses_of(code.scope(statement), predicate.id)
    # Nothing else may use it: that would need a condition and not a number.
    return statement if variables_of(statement) == [predicate.id] and len(uses) == 2 else None


def _cond_of_a_name(place: Place, call: ast.Call, named: ast.Assign, soften: Softener) -> Edit | None:
    code, name = place.code, place.code.written(named.targets[0])
    yes, no = argument_of(call, 1, "true_fn"), argument_of(call, 2, "false_fn")
    results = [_result(code, each) for each in (yes, no) if each is not None]
    soft = soften(named.value)
    if soft is None or len(results) != 2 or None in results:
        return None
    blended = f"{name} * {results[0]} + (1.0 - {name}) * {results[1]}"
    return place.draft().replace(named.value, soft).replace(call, in_place_of(code, call, blended)).edit()


def _result(code: Code, branch: ast.expr) -> str | None:
    """The value of a branch, as an operand."""
    if isinstance(branch, ast.Lambda):
        return code.operand(branch.body)
    return f"{code.written(branch)}()" if isinstance(branch, (ast.Name, ast.Attribute)) else None


def _blended_if(place: Place) -> Edit | None:
    """Rewrites an `if` that assigns one value or another to a name as one statement."""
    code, statement = place.code, place.statement
    if not isinstance(statement, ast.If) or place.node is None:
        return None
    soft = Softener(place, is_given_integers(place.group))(statement.test)
    if soft is None or not code.starts_a_line(statement) or len(statement.body) != 1:
        return None
    yes, rest = statement.body[0], statement.orelse
    after: ast.stmt | None = rest[0] if len(rest) == 1 else None
    end: ast.stmt = statement
    if not rest and isinstance(yes, ast.Return):
        listed = code.block(statement)
        following = listed[listed.index(statement) + 1 :]
        after = following[0] if len(following) == 1 else None
        end = after or statement
    gate = code.free_name(statement.test, "gate", "weight", "soft")
    indentation = code.indentation(statement)
    if isinstance(yes, ast.Return) and isinstance(after, ast.Return) and yes.value and after.value:
        written = f"return {blend(code, gate, yes.value, after.value)}"
    elif isinstance(yes, ast.Assign) and isinstance(after, ast.Assign) and _same_targets(code, yes, after):
        target = code.written(yes.targets[0])
        written = f"{target} = {blend(code, gate, yes.value, after.value)}"
    elif isinstance(yes, ast.Assign) and after is None and not rest and isinstance(yes.targets[0], ast.Name):
        target = code.written(yes.targets[0])
        written = f"{target} = {gate} * {code.operand(yes.value)} + (1.0 - {gate}) * {target}"
    else:
        return None
    start, _ = code.span(statement)
    _, stop = code.span(end)
    return place.draft().replace_between(start, stop, f"{gate} = {soft}\n{indentation}{written}").edit()


def _same_targets(code: Code, one: ast.Assign, other: ast.Assign) -> bool:
    return [code.written(each) for each in one.targets] == [code.written(each) for each in other.targets]
