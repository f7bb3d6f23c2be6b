"""Fixes that keep a value away from where a function has no finite value or no finite derivative."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from tb_gradflow.analyse.edits.soft import is_choice
from tb_gradflow.analyse.evidence.gradient_sizes import is_the_only_way
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.probabilities import probabilities_before
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates, in_place_of
from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.analyse.user_code.draft import Draft, is_plain
from tb_gradflow.analyse.user_code.library import Library, keras_of
from tb_gradflow.analyse.user_code.place import Place, place_of_group
from tb_gradflow.analyse.words.forward_pass import argument_of as input_of
from tb_gradflow.analyse.words.forward_pass import is_beyond, is_mostly_negative, share_of_zeros
from tb_gradflow.analyse.words.names import Group, layer_of, made_by
from tb_gradflow.record.python import (
    FUNCTIONS,
    argument_of,
    is_number,
    name_of,
    names_in,
    reads_of,
    uses_of,
    variables_of,
)
from tb_gradflow.record.report import Edit

_BOUNDED = "Values below the bound are raised to it, and get no gradient."
_SAME = "The forward values do not change."
_CUT = "Values above the bound are lowered to it, and get no gradient."

# A smaller square is lost in float32 next to one; the root of this one, 1e-6, is not.
_SMALL_SQUARE = "1e-12"
# As `keras.config.epsilon()`.
_EPSILON = "1e-7"
# The largest float32 below one is 1 - 6e-8; with this bound the slope of acos stays below a thousand.
_NEAR_ONE = "1e-6"
# exp(10) is 22,026: log-variances and log-scales beyond it mean nothing, and products of a few stay finite.
_LARGE = "10.0"
_BELOW_ALL = "-1e9"

_ROOTS = ("sqrt", "rsqrt")
_STANDARD_DEVIATIONS = ("std", "reduce_std")
_LOGARITHMS = ("log",)


def _is_all_bounded(group: Group) -> bool:
    """Whether a bound would leave no gradient: every path to the loss passes here, and all is at the bound or beyond
    it. A softmax or a sigmoid whose output is mostly zero is flat."""
    most = 0.5 if made_by(group, ("Softmax", "Sigmoid")) else 1.0
    is_beyond_all = share_of_zeros(group) >= most or (
        group.verdict.cause == "exp_overflow" and is_beyond(float(_LARGE), group)
    )
    # Where a softmax is flat, other paths through it are as well.
    flat = probabilities_before(group.suspect.topology, group.culprit) if most < 1.0 else -1
    return is_beyond_all and is_the_only_way(group.suspect, flat if flat >= 0 else group.culprit)


def bounded_root(group: Group) -> Iterator[Candidate]:
    """For the root of zero, whose derivative is infinite."""
    place = _place(group)
    if place is None or _is_all_bounded(group):
        return
    call, library = place.call, place.library
    if library is None or place.subject is None:
        return
    if call is not None and name_of(call.func) in _ROOTS:
        yield from candidates(_BOUNDED, _each_bounded(group, place, _SMALL_SQUARE))
        yield from candidates(_BOUNDED, _bounded(place, place.subject, _SMALL_SQUARE))
    elif call is not None and name_of(call.func) in ("norm", "euclidean_norm"):
        yield from candidates(_BOUNDED, _norm(place, call))
    elif call is not None and name_of(call.func) in _STANDARD_DEVIATIONS:
        rest = _rest(place.code, call, place.subject)
        variance = library("var", place.code.written(place.subject), *rest)
        root = library("sqrt", library("maximum", variance, _SMALL_SQUARE))
        yield from candidates(_BOUNDED, place.draft().replace(call, root).edit())


def _norm(place: Place, call: ast.Call) -> Edit | None:
    library, code = place.library, place.code
    assert library is not None and place.subject is not None
    order = argument_of(call, 1, "ord")
    if order is not None and not (isinstance(order, ast.Constant) and order.value in ("euclidean", 2, 2.0)):
        return None
    rest = [each for each in _rest(code, call, place.subject) if order is None or each != code.written(order)]
    total = library("sum", library("square", code.written(place.subject)), *rest)
    return place.draft().replace(call, library("sqrt", library("maximum", total, _SMALL_SQUARE))).edit()


def bounded_power(group: Group) -> Iterator[Candidate]:
    """For zero to a power below one. A norm has one inside too, but its input may be negative."""
    place = _place(group)
    if (
        place is None
        or _is_all_bounded(group)
        or (place.call is not None and name_of(place.call.func) not in ("pow", "power"))
    ):
        return
    base = place.node.left if isinstance(place.node, ast.BinOp) else place.argument(0, "x")
    if base is not None and not isinstance(base, ast.Constant):
        yield from candidates(_BOUNDED, _bounded(place, base, _SMALL_SQUARE))


def bounded_logarithm(group: Group) -> Iterator[Candidate]:
    """For the logarithm of zero: TensorFlow's log-softmax or log-sigmoid, if it is the logarithm of a softmax or
    sigmoid; otherwise a bound."""
    place = _place(group)
    if place is None or place.subject is None or place.library is None:
        return
    if place.call is not None and name_of(place.call.func) in _LOGARITHMS:
        made = place.code.value_of(place.subject)
        own = {"softmax": "log_softmax", "sigmoid": "log_sigmoid"}.get(_name(made))
        if own is not None and isinstance(made, ast.Call):
            rest = [place.code.written(each) for each in made.args]
            rest += [f"{each.arg}={place.code.written(each.value)}" for each in made.keywords]
            yield from candidates(_SAME, place.draft().replace(place.call, place.library(own, *rest)).edit())
        yield from candidates(_SAME, _of_a_sigmoid(place), _in_log_space(place))
        yield from candidates(_FROM_LOGITS, _cross_entropy(group, place, place.call))
        yield from candidates(_FROM_LOGITS, _binary_cross_entropy(group, place, place.call))
    outputs = group.op.outputs if group.op is not None else ()
    # For a single number the bound would leave no gradient at all.
    if (not outputs or outputs[0].shape != ()) and not is_mostly_negative(group) and not _is_all_bounded(group):
        least = f"-1.0 + {_EPSILON}" if group.op is not None and group.op.type == "Log1p" else _EPSILON
        several = _all_bounded(place) or _each_bounded(group, place, least)
        yield from candidates(_BOUNDED, several or _bounded(place, place.subject, least))


_FROM_LOGITS = "The values stay the same where they were finite: Keras computes them from the logits of its softmax."


def _cross_entropy(group: Group, place: Place, logarithm: ast.Call) -> Edit | None:
    """Keras's cross-entropy for `sum(y * log(p), axis=-1)`, if `p` is what a layer with a softmax returns."""
    code, softmax = place.code, _of_a_layer(group, "Softmax")
    product, keras = code.parent(logarithm), keras_of(place.modules)
    total = code.parent(product) if product is not None else None
    if softmax < 0:
        return None
    if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult) or not isinstance(total, ast.Call):
        return None
    axis = argument_of(total, 1, "axis")
    if _name(total) not in _SUMS or total.args[:1] != [product] or axis is None or place.subject is None:
        return None
    labels = code.written(product.left if product.right is logarithm else product.right)
    predicted = code.written(place.subject)
    outputs = group.trace.ops[softmax].outputs[0].shape or ()
    if ast.unparse(axis) not in ("-1", str(len(outputs) - 1)) or labels == predicted or not keras:
        return None
    entropy = f"{keras}.losses.categorical_crossentropy({labels}, {predicted})"
    outer = code.parent(total)
    if isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.USub):
        return place.draft().replace(outer, entropy).edit()
    return place.draft().replace(total, in_place_of(code, total, f"-{entropy}")).edit()


def _of_a_layer(group: Group, kind: str) -> int:
    """The softmax or sigmoid of a layer of Keras whose result is what the culprit, or one minus it, is computed from;
    -1 if there is none. Keras only finds the logits of the very tensor."""
    ops, given = group.trace.ops, group.culprit
    for _ in range(2):
        inputs = [edge.op for edge in ops[given].inputs if edge.op >= 0]
        made = next((each for each in inputs if ops[each].type == kind and layer_of(group.trace, each)), -1)
        given = next((each for each in inputs if ops[each].type == "Sub"), -1)
        if made >= 0 or given < 0:
            return made
    return -1


def _binary_cross_entropy(group: Group, place: Place, logarithm: ast.Call) -> Edit | None:
    """Keras's binary cross-entropy for the mean of `y * log(p) + (1 - y) * log(1 - p)`, if `p` is what a layer with a
    sigmoid returns."""
    code, keras = place.code, keras_of(place.modules)
    if _of_a_layer(group, "Sigmoid") < 0 or not keras:
        return None
    for mean in ast.walk(code.scope(logarithm)):
        if _name(mean) not in ("reduce_mean", "mean") or not isinstance(mean, ast.Call):
            continue
        if len(mean.args) != 1 or mean.keywords:
            continue
        # Both summands may have names.
        terms = [(code.value_of(each), sign) for each, sign in _terms(mean.args[0], 1)]
        if len(terms) != 2 or not any(logarithm in ast.walk(each) for each, _ in terms):
            continue
        found = [_weighted_logarithm(code, each, sign) for each, sign in terms]
        for labels, predicted, sign in found:
            others = [(f"{one} - {labels}", f"{one} - {predicted}", sign) for one in ("1", "1.0")]
            if labels and any(other in found for other in others):
                entropy = f"{keras}.losses.binary_crossentropy({labels}, {predicted})"
                return place.draft().replace(mean.args[0], entropy if sign < 0 else f"-{entropy}").edit()
    return None


def _terms(node: ast.expr, sign: int) -> Iterator[tuple[ast.expr, int]]:
    """The summands of an expression, each with its sign."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _terms(node.operand, -sign)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from _terms(node.left, sign)
        yield from _terms(node.right, sign if isinstance(node.op, ast.Add) else -sign)
    else:
        yield node, sign


def _weighted_logarithm(code: Code, node: ast.expr, sign: int) -> tuple[str, str, int]:
    """The weight of a logarithm, what it is of, and the sign of both; empty if it is something else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for weight, logarithm in ((node.left, node.right), (node.right, node.left)):
            if isinstance(logarithm, ast.Call) and _name(logarithm) in _LOGARITHMS and len(logarithm.args) == 1:
                if isinstance(weight, ast.UnaryOp) and isinstance(weight.op, ast.USub):
                    weight, sign = weight.operand, -sign
                return code.written(weight), code.written(logarithm.args[0]), sign
    return "", "", 0


_SUMS = {"reduce_sum": "logsumexp", "sum": "logsumexp", "cumsum": "cumulative_logsumexp"}


def _all_bounded(place: Place) -> Edit | None:
    """All logarithms of one statement, such as those of a probability and of one minus it: if one is of zero in this
    batch, another may be in the next. `None` if there is only one."""
    library, code = place.library, place.code
    statement = place.statement
    if library is None or statement is None or place.call is None or name_of(place.call.func) not in _LOGARITHMS:
        return None
    calls = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) == ast.unparse(place.call.func)
    ]
    open_ones = [each for each in calls if not _is_bounded(each.args[0])]
    if (
        len(open_ones) < 2
        or place.call not in open_ones
        or any(each in ast.walk(other) for each in open_ones for other in open_ones if each is not other)
    ):
        return None
    draft = place.draft()
    for each in open_ones:
        draft.replace(each.args[0], library("maximum", code.written(each.args[0]), _EPSILON))
    return draft.edit()


def _is_bounded(node: ast.expr) -> bool:
    """Whether an expression has a bound or an epsilon already, or is a number."""
    if is_number(node):
        return True
    if isinstance(node, ast.Call):
        return name_of(node.func) in ("maximum", "clip", "clip_by_value", "exp", "softplus", "cosh")
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else []
    return any(is_number(each) or (isinstance(each, ast.Call) and name_of(each.func) == "epsilon") for each in sides)


def _of_a_sigmoid(place: Place) -> Edit | None:
    """`log(1 - sigmoid(x))` is `log_sigmoid(-x)`; a `log(sigmoid(x))` next to it is just as close to zero for other
    values."""
    code, library = place.code, place.library
    assert library is not None and place.call is not None
    sigmoid = _sigmoid_in(code, place.call)
    if sigmoid is None or not sigmoid.args:
        return None
    draft = place.draft()
    for node in ast.walk(code.statement(place.call) or place.call):
        if not isinstance(node, ast.Call) or name_of(node.func) not in _LOGARITHMS:
            continue
        if _sigmoid_in(code, node) is sigmoid:
            sign = "-" if isinstance(node.args[0], ast.BinOp) else ""
            given = code.operand(sigmoid.args[0]) if sign else code.written(sigmoid.args[0])
            draft.replace(node, library("log_sigmoid", f"{sign}{given}"))
    return draft.edit()


def _in_log_space(place: Place) -> Edit | None:
    """`log(sum(w * exp(a)))` is `logsumexp(log(w) + a)`, in which nothing underflows; a cumulative sum likewise."""
    code, library, call = place.code, place.library, place.call
    assert library is not None and call is not None and place.subject is not None
    total = code.value_of(place.subject)
    function = _SUMS.get(_name(total), "") if isinstance(total, ast.Call) and total.args else ""
    if not isinstance(total, ast.Call) or not function or (library.is_keras and function == "cumulative_logsumexp"):
        return None
    if total is not place.subject and not _reads_what_it_read(code, total):
        return None
    terms = _logarithm(code, library, total.args[0])
    if terms is None:
        return None
    made, rest = code.value_of(total.args[0]), _rest(code, total, total.args[0])
    if isinstance(made, ast.Call) and _name(made) == "exp":
        terms = code.written(made.args[0])
    return place.draft().replace(call, library(function, terms, *rest)).edit()


def _logarithm(code: Code, library: Library, node: ast.expr) -> str | None:
    """The logarithm of an expression, written without the exponentials in it; `None` if there are none."""
    made = code.value_of(node)
    if made is not node and not _reads_what_it_read(code, made):
        return None
    if _name(made) == "exp" and isinstance(made, ast.Call) and len(made.args) == 1:
        return code.operand(made.args[0])
    if _name(made) == "softmax" and isinstance(made, ast.Call) and made.args:
        return library("log_softmax", code.written(made.args[0]), *_rest(code, made, made.args[0]))
    if not isinstance(made, ast.BinOp) or not isinstance(made.op, (ast.Mult, ast.Div)):
        return None
    sides = [_logarithm(code, library, each) for each in (made.left, made.right)]
    if sides == [None, None]:
        return None
    left, right = (
        found if found is not None else library("log", code.written(each))
        for found, each in zip(sides, (made.left, made.right), strict=True)
    )
    if isinstance(made.op, ast.Mult):
        return f"{left} + {right}"
    return f"{left} - ({right})" if isinstance(code.value_of(made.right), ast.BinOp) else f"{left} - {right}"


def _reads_what_it_read(code: Code, value: ast.AST) -> bool:
    """Whether the names in an expression stand for the same later on: each is bound once in the function."""
    stores = [
        each.arg if isinstance(each, ast.arg) else each.id
        for each in ast.walk(code.scope(value))
        if isinstance(each, ast.arg) or (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    ]
    return all(stores.count(name) <= 1 for name in names_in(value))


def _sigmoid_in(code: Code, logarithm: ast.Call) -> ast.Call | None:
    """The sigmoid whose logarithm is taken, directly or of one minus it."""
    given = logarithm.args[0] if len(logarithm.args) == 1 else None
    if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Sub) and _is_one(given.left):
        given = given.right
    made = code.value_of(given) if given is not None else None
    return made if isinstance(made, ast.Call) and _name(made) == "sigmoid" and not made.keywords else None


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (1, 1.0)


def bounded_angle(group: Group) -> Iterator[Candidate]:
    """For acos and asin at the ends of their range."""
    place = _place(group)
    if place is None or place.subject is None or place.library is None or group.op is None:
        return
    given = place.code.written(place.subject)
    if group.op.type == "Acosh":
        above = place.library("maximum", given, f"1.0 + {_NEAR_ONE}")
        cost = "Distances below 0.001 get no gradient."
        yield from candidates(cost, place.draft().replace(place.subject, above).edit())
    if group.op.type not in ("Acos", "Asin", "Atanh"):
        return
    clipped = place.library("clip", given, f"-1.0 + {_NEAR_ONE}", f"1.0 - {_NEAR_ONE}")
    yield from candidates(
        "Angles within 0.001 of the ends get no gradient.", place.draft().replace(place.subject, clipped).edit()
    )


def no_quotient_of_nothing(group: Group) -> Iterator[Candidate]:
    """For zero divided by zero."""
    place = _place(group)
    if place is None or place.library is None:
        return
    library, code, node = place.library, place.code, place.node
    cost = "Where the divisor is zero, so are the quotient and the gradient."
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        quotient = library("divide_no_nan", code.written(node.left), code.written(node.right))
        yield from candidates(cost, place.draft().replace(node, quotient).edit())
        bounded = "A divisor below the bound is replaced by the bound."
        yield from candidates(bounded, _bounded(place, node.right, _EPSILON))
    elif place.call is not None and name_of(place.call.func) in ("divide", "truediv", "div", "true_divide"):
        head = place.draft().replace(place.call.func, library.name("divide_no_nan"))
        yield from candidates(cost, head.edit())
    elif place.call is not None and name_of(place.call.func) in ("reduce_mean", "mean"):
        yield from candidates(cost, _mean(place, place.call))
    elif place.call is not None and name_of(place.call.func) == "normalize":
        yield from candidates(cost, _normalised(place, place.call))
    elif place.call is not None and name_of(place.call.func) == "angle" and place.subject is not None:
        draft = place.draft()
        if value := draft.computed_before(place.subject, "values", "numbers"):
            is_zero = f"{library('abs', value)} > 0"
            safe = library("where", is_zero, value, library("ones_like", value))
            angle = f"{code.written(place.call.func)}({safe})"
            yield from candidates(_ANGLE, draft.replace(place.call, angle).edit())


_ANGLE = "The angle of zero stays zero, and gets no gradient."


def _mean(place: Place, call: ast.Call) -> Edit | None:
    """A mean over no elements."""
    library, given = place.library, place.subject
    if library is None or given is None or len(call.args) + len(call.keywords) != 1:
        return None
    draft = place.draft()
    value = draft.computed_before(given, "kept", "values", "selected")
    if not value:
        return None
    count = library("cast", library("size", value), f"{value}.dtype")
    return draft.replace(call, library("divide_no_nan", library("sum", value), count)).edit()


def _normalised(place: Place, call: ast.Call) -> Edit | None:
    """For `tf.linalg.normalize(x)`, which returns the unit vector and the norm, if only the vector is used: a function
    that accepts zeros."""
    library, code, outer = place.library, place.code, place.code.parent(call)
    if library is None or library.is_keras or place.subject is None:
        return None
    axis, order = argument_of(call, 2, "axis"), argument_of(call, 1, "ord")
    over, given = f"axis={code.written(axis) if axis else None}", code.written(place.subject)
    if order is None:
        unit = library("math.l2_normalize", given, over)
    elif is_plain(place.subject) and isinstance(order, ast.Constant) and order.value == 1:
        unit = library("divide_no_nan", given, library("sum", library("abs", given), over, "keepdims=True"))
    else:
        return None
    if isinstance(outer, ast.Subscript) and ast.unparse(outer.slice) == "0":
        return place.draft().replace(outer, unit).edit()
    if isinstance(outer, ast.Assign) and isinstance(outer.targets[0], ast.Tuple) and len(outer.targets[0].elts) == 2:
        first, second = outer.targets[0].elts
        if isinstance(second, ast.Name) and not reads_of(code.scope(outer), second.id):
            return place.draft().replace(outer.targets[0], code.written(first)).replace(call, unit).edit()
    return None


def bounded_exponential(group: Group) -> Iterator[Candidate]:
    """For an exponential that overflows: a softplus or a softmax if it is a handwritten one; otherwise a bound."""
    place = _place(group)
    if place is None or place.call is None or place.subject is None or place.library is None:
        return
    name, leaves_some = name_of(place.call.func), not _is_all_bounded(group)
    if name == "cosh":
        yield from candidates(_SAME, _logarithm_of_cosh(place))
    if name in ("cosh", "sinh") and leaves_some:
        both = place.library("clip", place.code.written(place.subject), f"-{_LARGE}", _LARGE)
        yield from candidates(_CUT, place.draft().replace(place.subject, both).edit())
    if name not in ("exp", "expm1"):
        return
    yield from candidates(_SAME, _softplus(place), _softmax_by_hand(place))
    draft, bounded = place.draft(), place.library("minimum", place.code.written(place.subject), _LARGE)
    for each in _subjects(place):
        draft.replace(each, bounded)
    if leaves_some:
        yield from candidates(_CUT, draft.edit())


def _subjects(place: Place) -> list[ast.expr]:
    """The subject of the call, and of each call of its statement that is written the same: the quotient of one of them
    and a sum over the other stays one."""
    code, call = place.code, place.call
    assert call is not None and place.subject is not None
    found = [
        node.args[0]
        for node in ast.walk(code.statement(call) or call)
        if isinstance(node, ast.Call) and node.args and code.written(node) == code.written(call)
    ]
    return found or [place.subject]


def _logarithm_of_cosh(place: Place) -> Edit | None:
    """`log(cosh(x))` is `x + softplus(-2 x) - log 2`."""
    code, library, call = place.code, place.library, place.call
    assert library is not None and call is not None and place.subject is not None
    outer, draft = code.parent(call), place.draft()
    if not isinstance(outer, ast.Call) or _name(outer) not in _LOGARITHMS or len(outer.args) != 1:
        return None
    x = draft.computed_before(place.subject, "error", "x")
    if not x:
        return None
    operand = x if x.isidentifier() else code.operand(place.subject)
    text = f"{operand} + {library('softplus', f'-2.0 * {operand}')} - {math.log(2):.6f}"
    return draft.replace(outer, in_place_of(code, outer, text)).edit()


def _softplus(place: Place) -> Edit | None:
    """`log(1 + exp(x))` is `softplus(x)`."""
    code, library, call = place.code, place.library, place.call
    assert library is not None and call is not None and place.subject is not None
    added = code.parent(call)
    if isinstance(added, ast.BinOp) and isinstance(added.op, ast.Add):
        other = added.right if added.left is call else added.left
        outer = code.parent(added)
        if not (isinstance(other, ast.Constant) and other.value in (1, 1.0)):
            return None
    else:
        outer = added if _name(added) == "log1p" else None
    if isinstance(outer, ast.Call) and name_of(outer.func) in ("log", "log1p"):
        return place.draft().replace(outer, library("softplus", code.written(place.subject))).edit()
    return None


def _softmax_by_hand(place: Place) -> Edit | None:
    """Subtracting the largest element of each row first does not change the quotient."""
    code, library, call = place.code, place.library, place.call
    assert library is not None and call is not None and place.subject is not None
    scope = code.scope(call)
    statement = code.statement(call)
    names = {code.written(call)}
    if isinstance(statement, ast.Assign) and statement.value is call:
        names.update(code.written(each) for each in statement.targets)
    for node in ast.walk(scope):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and code.written(node.left) in names):
            continue
        total = code.value_of(node.right)
        if isinstance(total, ast.Call) and name_of(total.func) in ("reduce_sum", "sum") and total.args:
            if code.written(total.args[0]) not in names:
                continue
            axis = argument_of(total, 1, "axis")
            draft = place.draft()
            value = draft.computed_before(place.subject, "scores", "logits")
            if axis is None or not value:
                return None
            largest = library("max", value, f"axis={code.written(axis)}", f"keepdims={True}")
            for each in _subjects(place):
                draft.replace(each, f"{value} - {largest}")
            return draft.edit()
    return None


def finite_mask(group: Group) -> Iterator[Candidate]:
    """For a softmax over a row of minus infinity."""
    place = _place(group) or place_of_group(group)
    if place is None:
        return
    anchor = place.node or place.statement
    scopes = list(place.code.around(anchor)) if anchor is not None else []
    functions: list[ast.AST] = [each for each in scopes if isinstance(each, FUNCTIONS)]
    named = _names_of_minus_infinity(place)
    for scope in functions or [place.code.tree]:
        found = [node for node in ast.walk(scope) if _is_minus_infinity(node) or _reads_one_of(node, named)]
        if found:
            draft = place.draft()
            for node in found:
                draft.replace(node, _BELOW_ALL)
            cost = "A row in which everything is masked gets equal weights; nothing else changes."
            yield from candidates(cost, draft.edit())
            return


def _names_of_minus_infinity(place: Place) -> set[str]:
    """Constants of the file, of a class or of an object that are minus infinity, by the last part of their names."""
    return {
        name_of(target)
        for code in place.program.of_file(place.source.file)
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Assign) and _is_minus_infinity(node.value)
        for target in node.targets
        if isinstance(target, (ast.Name, ast.Attribute))
    }


def _reads_one_of(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and name_of(node) in names


def _is_minus_infinity(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _is_infinity(node.operand)
    if isinstance(node, ast.Call) and name_of(node.func) == "float" and node.args:
        given = node.args[0]
        return isinstance(given, ast.Constant) and str(given.value).lower() in ("-inf", "-infinity")
    return isinstance(node, ast.Attribute) and node.attr in ("NINF",)


def _is_infinity(node: ast.AST) -> bool:
    """`np.inf`, `math.inf`, `float("inf")`."""
    if isinstance(node, ast.Call) and name_of(node.func) == "float" and node.args:
        given = node.args[0]
        return isinstance(given, ast.Constant) and str(given.value).lower() in ("inf", "infinity", "+inf")
    return isinstance(node, ast.Attribute) and node.attr.lower() in ("inf", "infinity")


def larger_epsilon(group: Group) -> Iterator[Candidate]:
    """For a zero vector that is normalised: the factor is one over the root of epsilon."""
    place = _place(group)
    if place is None or place.call is None:
        return
    if name_of(place.call.func) in ("l2_normalize", "normalize") and argument_of(place.call, 2, "epsilon") is None:
        last = [*place.call.args, *(each.value for each in place.call.keywords)][-1]
        _, end = place.code.span(last)
        cost = "Vectors shorter than 0.001 are not scaled to unit length."
        yield from candidates(cost, place.draft().replace_between(end, end, ", epsilon=1e-6").edit())


_SAFE: dict[str, str] = {
    "Log": "ones_like", "Log1p": "ones_like", "Sqrt": "ones_like", "Rsqrt": "ones_like", "Pow": "ones_like",
    "RealDiv": "ones_like", "Reciprocal": "ones_like", "Div": "ones_like", "Acos": "zeros_like", "Asin": "zeros_like",
    "Atanh": "zeros_like", "Acosh": "ones_like", "Exp": "zeros_like", "Expm1": "zeros_like",
}  # fmt: skip
"""For each op, an input that it accepts: all ones or all zeros."""


def safe_branch(group: Group) -> Iterator[Candidate]:
    """For a choice that hides a value but not its gradient: where the branch is not taken, it gets a harmless value, as
    https://github.com/tensorflow/probability/blob/main/discussion/where-nan.pdf explains."""
    place = _place(group)
    if place is None or place.node is None or place.library is None or group.op is None:
        return
    safe = _SAFE.get(group.op.type)
    given = _singular_argument(place)
    if safe is None or given is None or is_hidden_everywhere(group):
        return  # the branch is hidden everywhere: without NaN, the gradient would be zero
    for condition, holds in _choices_around(place.code, place.node):
        draft = _made_safe(place, place.draft(), given, safe, condition, holds=holds)
        both = _made_safe(place, place.draft(), given, safe, condition, holds=holds)
        if _other_branch_made_safe(place, both, condition, holds=holds):
            yield from candidates(_SAME, both.edit())
        yield from candidates(_SAME, draft.edit())


def is_hidden_everywhere(group: Group) -> bool:
    """Whether the branch is singular in all elements, and every path that a gradient takes leads through it."""
    value = input_of(group)
    if value is None or value.zeros < math.prod(value.shape):
        return False
    topology, hops = group.suspect.topology, group.suspect.topology.gradient(group.suspect.target).hops
    starts = [op for op in topology.readers[group.suspect.state.variable] if op != group.culprit and hops[op] >= 0]
    around = walked(
        starts, lambda op: (user for user, _ in topology.consumers[op] if user != group.culprit and hops[user] >= 0)
    )
    return topology.trace.targets[group.suspect.target].op not in around


def _made_safe(place: Place, draft: Draft, given: ast.expr, safe: str, condition: ast.expr, *, holds: bool) -> Draft:
    assert place.library is not None
    written = place.code.written(given)
    harmless = place.library(safe, written)
    sides = (written, harmless) if holds else (harmless, written)
    return draft.replace(given, place.library("where", place.code.written(condition), *sides))


def _other_branch_made_safe(place: Place, draft: Draft, condition: ast.expr, *, holds: bool) -> bool:
    """Makes the other branch of the same choice safe if a function in it is singular too; returns whether there is
    one."""
    choice = place.code.parent(condition)
    branch = choice.args[2 if holds else 1] if isinstance(choice, ast.Call) and len(choice.args) > 2 else None
    found = False
    for node in ast.walk(branch) if branch is not None else ():
        kind = _SINGULAR.get(name_of(node.func)) if isinstance(node, ast.Call) else None
        given = node.args[0] if isinstance(node, ast.Call) and node.args else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            kind, given = "RealDiv", node.right
        if kind is not None and given is not None and not is_number(given):
            _made_safe(place, draft, given, _SAFE[kind], condition, holds=not holds)
            found = True
    return found


_SINGULAR = {
    "log": "Log", "log1p": "Log1p", "sqrt": "Sqrt", "rsqrt": "Rsqrt", "pow": "Pow", "power": "Pow", "acos": "Acos",
    "asin": "Asin", "exp": "Exp", "reciprocal": "Reciprocal",
}  # fmt: skip


def bounded_in_branch(group: Group) -> Iterator[Candidate]:
    """For a branch whose harmless input is not known: a value that stays finite everywhere."""
    makers = {
        "Log": bounded_logarithm, "Log1p": bounded_logarithm, "Sqrt": bounded_root, "Rsqrt": bounded_root,
        "Pow": bounded_power, "Acos": bounded_angle, "Asin": bounded_angle, "Acosh": bounded_angle,
        "Exp": bounded_exponential, "RealDiv": no_quotient_of_nothing, "Div": no_quotient_of_nothing,
    }  # fmt: skip
    maker = makers.get(group.op.type) if group.op is not None else None
    if is_hidden_everywhere(group):
        return
    if group.op is not None and group.op.type == "Exp":
        yield from _bounded_quotient(group)
    if maker is not None:
        yield from maker(group)


def _bounded_quotient(group: Group) -> Iterator[Candidate]:
    """In an exponential of a quotient, the divisor may be zero in other hidden elements, or in other batches."""
    place = _place(group)
    if place is None or place.call is None or place.library is None:
        return
    quotient = place.subject
    if isinstance(quotient, ast.BinOp) and isinstance(quotient.op, ast.Div):
        sides = place.library("divide_no_nan", *(place.code.written(each) for each in (quotient.left, quotient.right)))
        yield from candidates(_CUT, place.draft().replace(quotient, place.library("minimum", sides, _LARGE)).edit())


def _singular_argument(place: Place) -> ast.expr | None:
    """The expression that must not be zero, or not too large."""
    if isinstance(place.node, ast.BinOp):
        return place.node.right if isinstance(place.node.op, ast.Div) else place.node.left
    if place.call is not None and name_of(place.call.func) in ("divide", "truediv", "div"):
        return argument_of(place.call, 1, "y")
    return place.subject


def _choices_around(code: Code, node: ast.expr) -> Iterator[tuple[ast.expr, bool]]:
    """The conditions of the choices that use a value, and whether it is the one chosen where they hold."""
    statement, scope = code.statement(node), code.scope(node)
    names = variables_of(statement) if isinstance(statement, ast.Assign) else []
    for call in ast.walk(scope):
        if not is_choice(call) or not isinstance(call, ast.Call) or len(call.args) < 3:
            continue
        for holds, branch in ((True, call.args[1]), (False, call.args[2])):
            inside = node in ast.walk(branch)
            if (inside or uses_of(branch, *names)) and _is_known_at(code, call.args[0], statement, inside):
                yield call.args[0], holds


def _is_known_at(code: Code, condition: ast.expr, statement: ast.stmt | None, inside: bool) -> bool:
    """Whether everything that a condition reads has been computed where the branch is computed."""
    if inside or statement is None:
        return True
    reads = code.names(condition)
    scope = code.scope(statement)
    later = [
        name
        for each in ast.walk(scope)
        if isinstance(each, ast.Assign) and each.lineno >= statement.lineno
        for name in variables_of(each)
    ]
    return reads.isdisjoint(later)


def _bounded(place: Place, given: ast.expr, bound: str) -> Edit | None:
    library = place.library
    if library is None:
        return None
    return place.draft().replace(given, library("maximum", place.code.written(given), bound)).edit()


def _each_bounded(group: Group, place: Place, bound: str) -> Edit | None:
    """The same for each call of the function, in the user's function, at which a gradient breaks in this step: with
    only one of them bounded, the gradient would be as broken as before. None if there is only one."""
    library, others = place.library, _broken_too(group, place)
    if library is None or place.subject is None or not others:
        return None
    draft = place.draft()
    for each in (place.subject, *others):
        draft.replace(each, library("maximum", place.code.written(each), bound))
    return draft.edit()


def _broken_too(group: Group, place: Place) -> list[ast.expr]:
    """What other calls of the same function are given, if a gradient that is finite behind them is not in front."""
    op, suspect = group.op, group.suspect
    if op is None or place.node is None or suspect.target < 0:
        return []

    def breaks(number: int) -> bool | None:
        report = suspect.measured.of_op(suspect.target, number) if number >= 0 else None
        return None if report is None else bool(report.nan_count or report.inf_count)

    found: dict[ast.expr, ast.expr] = {}
    for index, each in enumerate(group.trace.ops):
        if index == group.culprit or (each.type, each.api) != (op.type, op.api) or breaks(index) is not False:
            continue
        if not any(breaks(edge.op) for edge in each.inputs):
            continue
        other = place_of_group(group, index)
        if other is None or other.call is None or other.subject is None or other.code is not place.code:
            continue
        if other.node is not place.node and place.code.function(other.call) is place.code.function(place.node):
            found.setdefault(other.call, other.subject)
    return list(found.values())


def _rest(code: Code, call: ast.Call, given: ast.expr) -> list[str]:
    """The other arguments of a call, as they are written."""
    rest = [code.written(each) for each in call.args if each is not given]
    named = [each for each in call.keywords if each.value is not given and each.arg not in ("name", "ord")]
    return rest + [f"{each.arg}={code.written(each.value)}" for each in named]


def _name(node: ast.AST | None) -> str:
    return name_of(node.func) if isinstance(node, ast.Call) else ""


def _place(group: Group) -> Place | None:
    place = place_of_group(group)
    return place if place is not None and place.node is not None else None
