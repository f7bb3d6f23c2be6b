"""A custom gradient that returns nothing, raises an error, or is not the derivative."""

from __future__ import annotations

from math import isclose

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.custom_gradients import right_gradient
from tb_gradflow.analyse.evidence.custom_gradients import Flaw, are_swapped, flaws_of, has_wrong_shape
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.step.measured import is_zero
from tb_gradflow.analyse.words.fields import ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text, called, file_name, place_of
from tb_gradflow.analyse.words.overrides import is_function
from tb_gradflow.analyse.words.phrases import braces
from tb_gradflow.record.report import Severity
from tb_gradflow.record.schema import GradientCheck


def rule(suspect: Suspect) -> Verdict | None:
    """A custom gradient returns None, or raises, for this input."""
    # A tape ignores `gradient_override_map`, so the op itself causes the cut.
    written = any(check.op == suspect.culprit for check in suspect.topology.trace.gradient_checks)
    own = suspect.op.custom_gradient and (suspect.op.type == "IdentityN" or written)
    return Verdict("custom_gradient_wrong", "error") if own else None


def own_gradient_differs(suspect: Suspect) -> Verdict | None:
    """A custom gradient on the variable's path to the loss is not the derivative."""
    for check in suspect.topology.trace.gradient_checks:
        for flaw in flaws_of(check):
            if _passes(suspect, flaw):
                severe = flaw.is_backwards or flaw.sample is None or check.response == "constant"
                return _verdict("error" if severe else "warning", check)
    return None


def own_gradient_is_zero(suspect: Suspect) -> Verdict | None:
    """The custom gradient itself returns zeros. If its forward pass changes nothing, it may be a closed gate."""
    check = _check_at(suspect)
    if check is None:
        return None
    return _verdict("warning" if check.identity else "error", check)


def own_gradient_gives_zero(suspect: Suspect) -> Verdict | None:
    """A function with a custom gradient uses the variable: whatever it computes, the variable gets what the custom
    gradient returns for it. Reported if no other path leads to the loss, and a gradient arrives."""
    topology, target = suspect.topology, suspect.target
    if target < 0:
        return None
    hops = topology.gradient(target).hops
    readers = [reader for reader in topology.readers[suspect.state.variable] if hops[reader] >= 0]
    users = {user for reader in readers for user in topology.onward(reader) if hops[user] >= 0}
    for check in topology.trace.gradient_checks:
        if users == {check.op} and check.response == "unknown" and _arrives_behind(suspect, check.op):
            return _verdict("error", check)
    return None


def _arrives_behind(suspect: Suspect, op: int) -> bool:
    """Whether gradients arrive at the first recorded places on the path from the loss to an op."""
    for place in walked([op], suspect.topology.onward):
        gradient = suspect.measured.of_op(suspect.target, place)
        if gradient is not None:
            return not is_zero(gradient)
    return False


def own_gradient_is_not_finite(suspect: Suspect) -> Verdict | None:
    """The custom gradient returns NaN or infinity, although the derivative is finite."""
    check = _check_at(suspect)
    samples = [sample for each in check.inputs for sample in each.samples] if check is not None else []
    finite = any(sample.returned is None for sample in samples)
    return _verdict("error", check) if check is not None and finite else None


def own_gradient_raises(suspect: Suspect) -> Verdict | None:
    """Requesting the gradient raises an error in a custom gradient on the path."""
    entry = suspect.state.entry
    if entry is None or entry.outcome != "error":
        return None
    for check in suspect.topology.trace.gradient_checks:
        refuses = check.problem.startswith("it raises") or any(map(has_wrong_shape, check.inputs))
        if refuses and any(_leads_to(suspect, edge.op) for edge in suspect.topology.trace.ops[check.op].inputs):
            return _verdict("error", check)
    return None


def _verdict(severity: Severity, check: GradientCheck) -> Verdict:
    return Verdict("custom_gradient_wrong", severity, check.op)


def _check_at(suspect: Suspect) -> GradientCheck | None:
    """The record of the suspect op, if it has a custom gradient."""
    return next((each for each in suspect.topology.trace.gradient_checks if each.op == suspect.culprit), None)


def _passes(suspect: Suspect, flaw: Flaw) -> bool:
    """Whether the variable's gradient comes through the flawed input."""
    topology, target = suspect.topology, suspect.target
    if target < 0 or topology.gradient(target).hops[flaw.check.op] < 0:
        return False
    edges = [edge for edge in topology.trace.ops[flaw.check.op].inputs if edge.input == flaw.input.input]
    return any(_leads_to(suspect, edge.op) for edge in edges)


def _leads_to(suspect: Suspect, op: int) -> bool:
    readers = suspect.topology.readers[suspect.state.variable]
    return op >= 0 and (op in readers or bool(suspect.topology.way_between(readers, op)))


def message_and_fix(group: Group) -> Text:
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
    """TensorFlow numbers anonymous gradient functions; such a number means nothing to users."""
    name = (group.op.custom_gradient if group.op else None) or ""
    known = "" if name.startswith("CustomGradient-") else f" `{name}`"
    return f"the custom gradient{known}{place_of(group.trace, group.culprit)}"


def _named(group: Group, check: GradientCheck) -> str:
    source = group.trace.sources[check.source] if check.source is not None else None
    place = f" ({file_name(source.file)}:{source.line})" if source is not None else place_of(group.trace, check.op)
    if not check.function:
        return _anonymous(group)
    if is_function(group):
        return f"the custom gradient of `{check.function}`{place}"
    return f"`{check.function}`{place}, which replaces the gradient of {called(group.trace, check.op)},"


def _none(group: Group, name: str) -> Text:
    return Template(
        "{they_get} no gradient: " + name + " returns `None` for {them}.",
        "Return a gradient for every argument: `def grad(upstream): return upstream * d_first, upstream * d_second`.",
    )(group)


def _raises(group: Group, check: GradientCheck, name: str) -> Text:
    said = braces(check.problem.removeprefix("it "))
    return Template(
        "{they_get} no gradient: " + f"{name} {said}.",
        "It is called with a gradient for each result, and must return one for each argument: `def grad(upstream): "
        "return upstream * d_first, upstream * d_second`.",
    )(group)


def _wrong_shape(group: Group, flaw: Flaw, name: str) -> Text:
    found, wanted = (list(shape or ()) for shape in (flaw.input.returned_shape, flaw.input.shape))
    fix = "Return one value for each element of the argument, `upstream * derivative`, and do not sum over them."
    if len(found) > len(wanted):
        fix = "Sum over the axes that the forward pass has broadcast: `tf.reduce_sum(upstream * derivative, axis=0)`."
    return Template(
        "{they_get} a gradient of the wrong shape: "
        + f"{name} returns a gradient of shape {found} for an argument of shape {wanted}.",
        fix,
    )(group)


def _zeros(group: Group, check: GradientCheck, flaw: Flaw | None, name: str) -> Text:
    zero = ZERO + name + " itself returns zeros"
    if flaw is not None and flaw.sample is not None:
        true = f", where the derivative is {_number(flaw.sample.derivative)}{_at(flaw)}."
        return Template(zero + true, _repair(group, flaw))(group)
    if check.identity:
        fix = f"Return the gradient that it receives, `return upstream`, or remove `{check.function}`."
        return Template(zero + ", and its forward pass changes nothing.", fix)(group)
    if check.response == "unknown":
        # It could not be called to see what it returns.
        return Template(
            zero + ".",
            "Check what it computes for {them}, and from which values: add `tf.print(tf.norm(gradient))` before its "
            "`return`.",
        )(group)
    return Template(
        zero + ".", "Return a gradient that is not zero; for a straight-through estimator, `return upstream`."
    )(group)


def _not_finite(group: Group, name: str) -> Text:
    return Template(
        "{they_get} {size}: " + name + " returns it, although the derivative is finite there.",
        "Keep it finite: `tf.math.divide_no_nan(a, b)` instead of `a / b`, or `tf.where(ok, safe, 0.0)` with a safe "
        "argument.",
    )(group)


def _differs(group: Group, flaw: Flaw, name: str) -> Text:
    assert flaw.sample is not None
    returned, derivative = (_number(each or 0.0) for each in (flaw.sample.returned, flaw.sample.derivative))
    if are_swapped(flaw.check):
        return Template(
            "{they_get} the gradient of another argument: " + f"{name} returns {returned} where the derivative is "
            f"{derivative}{_at(flaw)}, and vice versa.",
            "Return the gradients in the order of the arguments: `return upstream * d_first, upstream * d_second`.",
        )(group)
    message = "{they_get} a gradient that is not the derivative: " + name
    message += f" returns {returned} where the derivative is {derivative}{_at(flaw)}{_everywhere(flaw)}."
    return Template(message, _repair(group, flaw))(group)


def _everywhere(flaw: Flaw) -> str:
    """What is true of this element and all others."""
    if flaw.check.response == "constant":
        return "; it does not depend on the upstream gradient"
    ratio = _factor(flaw)
    if ratio is None:
        return ""
    if isclose(ratio, -1, rel_tol=1e-2):
        return ", everywhere with the wrong sign"
    return f", everywhere {_number(ratio)} times the derivative"


def _factor(flaw: Flaw) -> float | None:
    """The returned value divided by the derivative, if that is a common factor: for a single number there is always a
    quotient, and only integers and their inverses mean something."""
    ratio, shape = flaw.input.ratio, flaw.input.shape
    if not ratio or shape is None or any(size != 1 for size in shape):
        return ratio
    whole = any(isclose(each, round(each), rel_tol=1e-2) for each in (ratio, 1 / ratio))
    return ratio if whole else None


def _repair(group: Group, flaw: Flaw) -> str:
    instead = ""
    if flaw.sample is not None and flaw.sample.automatic is not None:
        own = "`tf.custom_gradient`" if is_function(group) else "the override"
        instead = f", or remove {own}: TensorFlow can differentiate this forward computation"
    if flaw.check.response == "constant":
        return f"Multiply by the upstream gradient, `def grad(upstream): return upstream * derivative`{instead}."
    ratio = _factor(flaw)
    if ratio is not None and isclose(ratio, -1, rel_tol=1e-2):
        return f"Return its negative{instead}."
    if ratio:
        return f"Return {_number(1 / ratio)} times as much{instead}."
    return f"Return {_product_with_upstream(flaw.check)}{instead}."


def _product_with_upstream(check: GradientCheck) -> str:
    """What a gradient function must return: more than an element-wise product if results depend on several elements."""
    for kind, product in _SOFT.items():
        if kind in check.forward and set(check.forward) <= {kind, "Identity", "Reshape"}:
            return f"`{product}`, as every result of a softmax depends on the whole row"
    if _MIXING.isdisjoint(check.forward):
        return "`upstream` times the derivative"
    return "the sum of `upstream` times the derivative over all results that depend on an element"


# `y` is what the function returns.
_SOFT = {
    "LogSoftmax": "upstream - tf.exp(y) * tf.reduce_sum(upstream, axis=-1, keepdims=True)",
    "Softmax": "y * (upstream - tf.reduce_sum(upstream * y, axis=-1, keepdims=True))",
}

_MIXING = frozenset(
    {"Sum", "Mean", "Max", "Min", "Prod", "Cumsum", "Cumprod", "MatMul", "BatchMatMulV2", "Einsum"} | {*_SOFT}
)


def _at(flaw: Flaw) -> str:
    assert flaw.sample is not None
    return f" (element {list(flaw.sample.index)})" if flaw.sample.index else ""


def _number(value: float) -> str:
    return f"{value:.3g}"


CAUSE = Cause(
    name="custom_gradient_wrong",
    meaning="a custom gradient returns None, raises, or returns a shape other than that of its input; it returns zeros "
    "or NaN itself; or, in `explain`, values other than the derivative (below)",
    severity="error; warning if it points in the right direction, or returns zeros while the forward pass changes "
    "nothing",
    fix="return the derivative times the upstream gradient; or remove it",
    text=message_and_fix,
    plight="a wrong gradient",
    edits=(right_gradient,),
)
