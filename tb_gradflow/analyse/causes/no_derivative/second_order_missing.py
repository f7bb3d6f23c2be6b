"""The loss contains an inner gradient, which has no derivative itself."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.images import resized_by_products
from tb_gradflow.analyse.edits.settings import curved
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS, second_derivatives
from tb_gradflow.analyse.graph.inner_gradients import forward_of, is_slope
from tb_gradflow.analyse.graph.op_sets import OFFSETS, STRAIGHT
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, called, place_of


def rule(suspect: Suspect) -> Verdict | None:
    """The op belongs to an inner gradient in the loss, and has no derivative itself."""
    return Verdict("second_order_missing", "error") if suspect.op.backward else None


def second_order_zero(suspect: Suspect) -> Verdict | None:
    """The derivative of a piecewise linear function is piecewise constant: its own derivative is zero."""
    straight = suspect.op.backward and suspect.op.type in STRAIGHT
    return Verdict("second_order_missing", "error") if straight else None


def second_derivative_is_zero(suspect: Suspect) -> Verdict | None:
    """A product with the second derivative of such a function, which is zero."""
    if suspect.op.type not in PRODUCTS:
        return None
    zeros = second_derivatives(suspect.measured)
    factors = [edge.op for edge in suspect.op.inputs if edge.op >= 0 and edge.op != suspect.producer]
    origin = max((zeros[factor] for factor in factors), default=-1)
    return Verdict("second_order_missing", "error", origin) if origin >= 0 else None


def differentiated_away(suspect: Suspect) -> Verdict | None:
    """The loss contains an inner gradient that does not depend on the variable: an offset, which disappears in the
    derivative; or a factor before which every slope is constant."""
    topology, ops = suspect.topology, suspect.topology.trace.ops
    if suspect.target < 0 or suspect.culprit < 0:
        return None
    straight = suspect.measured.once("straight", lambda: _straight(topology)) if suspect.op.backward else -1
    if straight >= 0:
        return Verdict("second_order_missing", "error", straight)
    if suspect.culprit not in suspect.measured.once(("inner", suspect.target), lambda: _inner_ends(suspect)):
        return None
    shifts = [op for reader in topology.readers[suspect.state.variable] for op in topology.onward(reader)]
    if shifts and all(ops[op].type in OFFSETS for op in shifts):
        return Verdict("shift_invariant_parameter", "info", shifts[0])
    return None


def constant_slope(suspect: Suspect) -> Verdict | None:
    """The gradient of a derivative that does not depend on a tensor, although what was differentiated does: that is
    linear in it. TensorFlow returns `None` for this zero, and code such as `u_xx + f` fails with it."""
    topology, target, variable = suspect.topology, suspect.target, suspect.state.variable
    if target < 0 or not is_slope(topology.trace, target) or not topology.trace.variables[variable].computed:
        return None
    others = (place for place in range(len(topology.trace.targets)) if place != target)
    depends = any(topology.influences(variable, place) for place in others)
    return Verdict("second_order_missing", "error", NO_OP) if depends else None


def _straight(topology: Topology) -> int:
    """The last op of an inner gradient whose own derivative is zero; -1 if there is none."""
    return max(
        (op for kind in STRAIGHT for op in topology.by_type.get(kind, ()) if topology.trace.ops[op].backward),
        default=-1,
    )


def _inner_ends(suspect: Suspect) -> set[int]:
    """The targets of the inner gradients that the loss contains."""
    topology = suspect.topology
    influence = topology.influence(suspect.target).hops
    inner = any(each.backward and influence[op] >= 0 for op, each in enumerate(topology.trace.ops))
    others = (target.op for place, target in enumerate(topology.trace.targets) if place != suspect.target)
    return set(others) if inner else set()


def message_and_fix(group: Group) -> Text:
    """Names the op of the forward pass: the op of its gradient means nothing to users."""
    kind = group.op.type if group.op is not None else ""
    place = forward_of(group.trace, group.culprit) if group.op is not None else -1
    forward = called(group.trace, place) + place_of(group.trace, place) if place >= 0 else ""
    inner = "the loss is computed from an inner gradient"
    if group.op is None:
        target = group.trace.targets[group.suspect.target]
        slope = f"`{target.name}`" if target.name.isidentifier() else "what it is requested of"
        return Template(
            f"{{they_get}} no gradient: {slope}{{line}} is a derivative that does not depend on {{names}}, as that of "
            "a function that is linear in {names}. The second derivative is zero, for which TensorFlow returns `None`.",
            "Put a curved activation in between, `tf.tanh(x)` or `tf.sin(x)`. If a zero is correct, request the "
            "gradient with `unconnected_gradients=tf.UnconnectedGradients.ZERO`.",
        )(group)
    if group.suspect.target >= 0 and is_slope(group.trace, group.suspect.target):
        function = forward or f"`{kind}`"
        return Template(
            f"The second derivative with respect to {{names}} is exactly zero: the slope of {function} is constant "
            "here.",
            "Use a function that is curved: `tf.tanh(x)`, `tf.sin(x)` or `tf.nn.softplus(x)` instead of a ReLU.",
        )(group)
    if any(state.status in ("zero", "unused") for state in group.states):
        plight = "{they_get} " + ("a gradient of exactly zero" if _any_zero(group) else "no gradient")
        return Template(
            f"{plight}: {inner}, and the second derivative of {forward or f'the function that `{kind}` belongs to'} "
            f"is zero.",
            "Use a function whose second derivative is not zero: `tf.nn.softplus(x)` or `tf.nn.silu(x)` instead of a "
            "ReLU.",
        )(group)
    of = f"the derivative of {forward}" if forward else f"`{kind}`, an op of that gradient"
    registered = any(edge.passes == "unregistered" for edge in group.op.inputs) if group.op is not None else False
    raises = f": requesting it raises `LookupError: gradient registry has no entry for: {kind}`" if registered else ""
    return Template(
        "{they_get} no gradient: " + f"{inner}, and TensorFlow cannot differentiate {of}{raises}.",
        f"Write {forward or 'this part'} with ops that can be differentiated twice, or keep it out of the inner tape.",
    )(group)


def _any_zero(group: Group) -> bool:
    """TensorFlow returns None for some variables where others get zeros, for example for the weights of the last
    layer."""
    return any(state.status == "zero" for state in group.states)


CAUSE = Cause(
    name="second_order_missing",
    meaning="the loss contains an inner gradient, and an op of that gradient has no derivative, or one that is zero, "
    "as the second derivative of a ReLU is",
    severity="error",
    fix="ops that can be differentiated twice",
    text=message_and_fix,
    subject="the second derivative of {op}",
    verb="is missing",
    shows_forward_op=True,
    explains_one_path=True,
    edits=(curved, resized_by_products),
)
