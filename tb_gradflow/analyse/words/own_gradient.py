"""Words for gradients that the user wrote."""

from __future__ import annotations

from math import isclose, prod

from tb_gradflow.analyse.causes.own_gradient import Flaw, are_swapped, flaws_of
from tb_gradflow.analyse.words.fields import ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text, Writer, called, file_name, place_of
from tb_gradflow.analyse.words.overrides import out_of_reach
from tb_gradflow.record.schema import GradientCheck, Trace


def custom(group: Group) -> Text:
    """By what was found: nothing returned, an exception, zeros, the wrong shape, or a number that is not right."""
    status = group.suspect.state.status
    check = next((each for each in group.trace.gradient_checks if each.op == group.culprit), None)
    if check is None:
        return _none(group, _anonymous(group))
    name = _named(group, check)
    if check.problem.startswith("it raises"):
        return _raises(group, check, name)
    flaw = next(flaws_of(check), None)
    if flaw is not None and flaw.sample is None:
        return _wrong_shape(group, flaw, name)
    if status in ("disconnected", "error"):
        return _none(group, name)
    if status == "zero":
        return _zeros(group, check, flaw, name)
    if status in ("nan", "inf"):
        return _not_finite(group, name)
    return _differs(group, flaw, name) if flaw is not None else _none(group, name)


def _anonymous(group: Group) -> str:
    """TensorFlow numbers anonymous gradient functions; a number says nothing to anybody."""
    name = (group.op.custom_gradient if group.op else None) or ""
    known = "" if name.startswith("CustomGradient-") else f" `{name}`"
    return f"the custom gradient{known}{place_of(group.trace, group.culprit)}"


def _named(group: Group, check: GradientCheck) -> str:
    source = group.trace.sources[check.source] if check.source is not None else None
    place = f" ({file_name(source.file)}:{source.line})" if source is not None else place_of(group.trace, check.op)
    if not check.function:
        return _anonymous(group)
    if _is_function(group):
        return f"the custom gradient of `{check.function}`{place}"
    return f"`{check.function}`{place}, which stands in for the gradient of {called(group.trace, check.op)},"


def _none(group: Group, name: str) -> Text:
    return Template(
        "{they_get} no gradient: " + name + " returns none for {them}.",
        "Return a gradient for every argument: `def grad(upstream): return upstream * d_first, upstream * d_second`.",
    )(group)


def _raises(group: Group, check: GradientCheck, name: str) -> Text:
    said = check.problem.removeprefix("it ").replace("{", "{{").replace("}", "}}")
    return Template(
        "{they_get} no gradient: " + f"{name} {said}.",
        "It is called with a gradient for each result, and has to return one for each argument: "
        "`def grad(upstream): return upstream * d_first, upstream * d_second`.",
    )(group)


def _wrong_shape(group: Group, flaw: Flaw, name: str) -> Text:
    found, wanted = (list(shape or ()) for shape in (flaw.input.returned_shape, flaw.input.shape))
    fix = "Return one number for each element of the argument, `upstream * derivative`, and do not sum over them."
    if len(found) > len(wanted):
        fix = "Sum over the axes that the forward pass has broadcast: `tf.reduce_sum(upstream * derivative, axis=0)`."
    return Template(
        "{they_get} a gradient that fits nothing: "
        + f"{name} returns the shape {found} for an argument of the shape {wanted}.",
        fix,
    )(group)


def _zeros(group: Group, check: GradientCheck, flaw: Flaw | None, name: str) -> Text:
    zero = ZERO + name + " itself returns zeros"
    if flaw is not None and flaw.sample is not None:
        true = f", where the derivative is {_number(flaw.sample.derivative)}{_at(flaw)}."
        return Template(zero + true, _repair(group, flaw))(group)
    if check.identity:
        fix = f"Return what is to pass, `return upstream`, or leave `{check.function}` out."
        return Template(zero + ", and its forward pass changes nothing.", fix)(group)
    if check.response == "unknown":
        # Nobody could call it to see what it does.
        return Template(
            zero + ".",
            "Look at what it computes for {them}, and from what: `tf.print(tf.norm(gradient))` in front of its "
            "`return`.",
        )(group)
    return Template(
        zero + ".", "Return a gradient that teaches something: to pass it straight through, `return upstream`."
    )(group)


def _not_finite(group: Group, name: str) -> Text:
    return Template(
        "{they_get} {size}: " + name + " returns it, and the derivative is finite there.",
        "Keep it finite: `tf.math.divide_no_nan(a, b)` for `a / b`, `tf.where(ok, safe, 0.0)` with a safe argument.",
    )(group)


def _differs(group: Group, flaw: Flaw, name: str) -> Text:
    assert flaw.sample is not None
    returned, derivative = (_number(each or 0.0) for each in (flaw.sample.returned, flaw.sample.derivative))
    if are_swapped(flaw.check):
        return Template(
            "{they_get} the gradient of another argument: " + f"{name} returns {returned} where the derivative is "
            f"{derivative}{_at(flaw)}, and the other way round.",
            "Return the gradients in the order of the arguments: `return upstream * d_first, upstream * d_second`.",
        )(group)
    message = "{they_get} a gradient that is not the derivative: " + name
    message += f" returns {returned} where the derivative is {derivative}{_at(flaw)}{_everywhere(flaw)}."
    return Template(message, _repair(group, flaw))(group)


def _everywhere(flaw: Flaw) -> str:
    """What the element has in common with all the others."""
    if flaw.check.response == "constant":
        return "; it is the same whatever arrives from the loss"
    ratio = _factor(flaw)
    if ratio is None:
        return ""
    if isclose(ratio, -1, rel_tol=1e-2):
        return ", everywhere with the wrong sign"
    return f", everywhere {_number(ratio)} times the derivative"


def _factor(flaw: Flaw) -> float | None:
    """What it returns over the derivative, where that is a factor and no mere quotient: of a single number there is
    always one, and only whole ones and their inverses tell something."""
    ratio, shape = flaw.input.ratio, flaw.input.shape
    if not ratio or shape is None or prod(shape) != 1:
        return ratio
    whole = any(isclose(each, round(each), rel_tol=1e-2) for each in (ratio, 1 / ratio))
    return ratio if whole else None


def _repair(group: Group, flaw: Flaw) -> str:
    instead = ""
    if flaw.sample is not None and flaw.sample.automatic is not None:
        own = "`tf.custom_gradient`" if _is_function(group) else "the override"
        instead = f", or leave {own} out: TensorFlow has a derivative for this forward computation"
    if flaw.check.response == "constant":
        return f"Multiply with what arrives, `def grad(upstream): return upstream * derivative`{instead}."
    ratio = _factor(flaw)
    if ratio is not None and isclose(ratio, -1, rel_tol=1e-2):
        return f"Return the negative of it{instead}."
    if ratio:
        return f"Return {_number(1 / ratio)} times as much{instead}."
    return f"Return {_product_with_upstream(flaw.check)}{instead}."


def _product_with_upstream(check: GradientCheck) -> str:
    """What a gradient function has to return: more than a product of elements where results depend on several."""
    for kind, product in _SOFT.items():
        if kind in check.forward and set(check.forward) <= {kind, "Identity", "Reshape"}:
            return f"`{product}`, as every result of a softmax depends on the whole row"
    if _MIXING.isdisjoint(check.forward):
        return "`upstream` times the derivative"
    return "the sum of `upstream` times the derivative over all results that an element takes part in"


# `y` is what the function returns.
_SOFT = {
    "LogSoftmax": "upstream - tf.exp(y) * tf.reduce_sum(upstream, axis=-1, keepdims=True)",
    "Softmax": "y * (upstream - tf.reduce_sum(upstream * y, axis=-1, keepdims=True))",
}
_MIXING = frozenset(
    {"Sum", "Mean", "Max", "Min", "Prod", "Cumsum", "Cumprod", "MatMul", "BatchMatMulV2", "Einsum"} | {*_SOFT}
)


def _is_function(group: Group) -> bool:
    """Whether it belongs to a function; else it stands in for the gradient of a single op."""
    return group.op is not None and group.op.type == "IdentityN"


def _at(flaw: Flaw) -> str:
    assert flaw.sample is not None
    return f" (element {list(flaw.sample.index)})" if flaw.sample.index else ""


def _number(value: float) -> str:
    return f"{value:.3g}"


def ignored_override(group: Group) -> str:
    """A sentence on a gradient that the user has registered for the culprit in vain; empty if there is none."""
    if group.op is None or _is_function(group):
        return ""
    kind = group.op.type
    # An eager op does not keep the name of what was to replace its gradient.
    name = next((each.gradient for each in group.trace.overrides if each.used and each.type == kind), None)
    if group.op.custom_gradient is None and (name is None or not _is_cut(group)):
        return out_of_reach(group.trace, kind) if _is_cut(group) else ""
    if any(check.op == group.culprit for check in group.trace.gradient_checks):
        return ""
    return (
        f" The override `{group.op.custom_gradient or name}` does not help: a `tf.GradientTape` does not look at "
        "`gradient_override_map`, only `tf.custom_gradient` works with it."
    )


def _is_cut(group: Group) -> bool:
    return group.suspect.state.status in ("disconnected", "zero")


def second_order(group: Group) -> Text:
    """Names the op of the forward pass: its gradient's op means nothing to those who did not write TensorFlow."""
    kind = group.op.type if group.op is not None else ""
    place = forward_of(group.trace, group.culprit) if group.op is not None else -1
    forward = called(group.trace, place) + place_of(group.trace, place) if place >= 0 else ""
    inner = "the loss is made of an inner gradient"
    if any(state.status in ("zero", "unused") for state in group.states):
        plight = "{they_get} " + ("a gradient of exactly zero" if _any_zero(group) else "no gradient")
        return Template(
            f"{plight}: {inner}, and the slope of {forward or f'what `{kind}` belongs to'} does not change.",
            "Use a function that is curved: `tf.nn.softplus(x)` or `tf.nn.silu(x)` in the place of a ReLU.",
        )(group)
    of = f"the derivative of {forward}" if forward else f"`{kind}`, which that is made with,"
    registered = any(edge.passes == "unregistered" for edge in group.op.inputs) if group.op is not None else False
    raises = f": asking raises `LookupError: gradient registry has no entry for: {kind}`" if registered else ""
    return Template(
        "{they_get} no gradient: " + f"{inner}, and {of} has no derivative of its own in TensorFlow{raises}.",
        f"Write {forward or 'this part'} out with ops that can be differentiated twice, or leave it out of what the "
        "inner tape differentiates.",
    )(group)


def _any_zero(group: Group) -> bool:
    """TensorFlow answers None for some where others get zeros: for the weights of a last layer, say."""
    return any(state.status == "zero" for state in group.states)


def forward_of(trace: Trace, index: int) -> int:
    """The op of the forward pass whose derivative the op of an inner gradient is made for; -1 if that is not known."""
    ops, kind = trace.ops, trace.ops[index].type
    stems = [place for place, op in enumerate(ops) if not op.backward and op.type and kind.startswith(op.type)]
    return max(stems, key=lambda place: len(ops[place].type), default=-1)


WRITERS: dict[str, Writer] = {"custom_gradient_wrong": custom, "second_order_missing": second_order}
