"""Gradients arrive on several paths, and add up to zero."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tb_gradflow.analyse.causes.cancelling.sums import NOISE, cancelling_users, takers_of, where_ways_join
from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.settings import old_side, stopped_sample, stopped_side
from tb_gradflow.analyse.edits.straight_through import through_difference
from tb_gradflow.analyse.evidence.stops import takes_back_its_value
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import constant_of
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.samples import sample_in
from tb_gradflow.analyse.graph.stopped import STOPS
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import is_zero
from tb_gradflow.analyse.user_code.candidate import Candidate
from tb_gradflow.analyse.words.code import call_on, calls_in_order
from tb_gradflow.analyse.words.fields import SIZE, ZERO, Template, fields, filled
from tb_gradflow.analyse.words.names import Group, Text, call_of, namespace
from tb_gradflow.analyse.words.phrases import braces
from tb_gradflow.record.schema import Op


def rule(suspect: Suspect) -> Verdict | None:
    """A value is used more than once, each use returns a gradient, and their sum is zero.

    It is the variable's value, or one that is computed from it. The op to name is the one at which the paths join.
    """
    users = cancelling_users(suspect)
    join = where_ways_join(suspect, users)
    return Verdict("gradient_cancellation", "warning", join) if join >= 0 else None


def equal_sides(suspect: Suspect) -> Verdict | None:
    """A value is compared with one that was computed from the same weights, and both are equal in every element: two
    views of the same input, neither of which was augmented. Forward values are not recorded, but the gradient shows it:
    the gradient of a square is zero everywhere only if the difference is.
    """
    if (square := _square_below_a_floor(suspect)) >= 0:
        text = _equal(suspect.type_of(square), "equal, or almost equal,")
        return Verdict("gradient_cancellation", "warning", square, text)
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    if not suspect.exact or incoming is None or incoming.zero_fraction > 0 or not incoming.max_abs:
        return None
    ops = suspect.topology.trace.ops
    difference = _difference_in(ops, suspect.culprit)
    if _is_of_itself(ops, difference):
        return Verdict("gradient_cancellation", "error", text=_ZERO_BY_ITSELF)
    if not _is_of_both_sides(suspect, difference):
        return None
    return Verdict("gradient_cancellation", "warning", text=_equal(suspect.op.type, "equal"))


_ZERO_BY_ITSELF = Template(
    ZERO + "{op} is given the difference of a value and itself, which is always zero.",
    "Check what should be compared there: one of the two sides is the wrong one.",
)


def _equal(kind: str, how: str) -> Template:
    sides = "both sides of {op}" if kind == "SquaredDifference" else "both sides of the difference in {op}"
    return Template(
        f"{ZERO}{sides} are computed from {{them}}, and in this step they are {how} in every element.",
        "Make them differ, with augmentation or with active dropout (`training=True`), or remove this term.",
    )


def taken_back(suspect: Suspect) -> Verdict | None:
    """A straight-through estimator that takes back the value it added, where the gradients were not recorded: all that
    is known is that none comes out."""
    topology, measured, target = suspect.topology, suspect.measured, suspect.target

    def onward(op: int) -> Sequence[int]:
        gradient = measured.of_op(target, op)
        return topology.onward(op) if gradient is None or is_zero(gradient) else ()

    if target < 0:
        return None
    hidden = measured.once(("taken back", target), lambda: _taken_back_unseen(suspect))
    readers = topology.readers[suspect.state.variable]
    last = next((op for op in walked(readers, onward) if op in hidden), -1) if hidden else -1
    return Verdict("gradient_cancellation", "warning", last) if last >= 0 else None


def _taken_back_unseen(suspect: Suspect) -> set[int]:
    topology, measured, target = suspect.topology, suspect.measured, suspect.target
    last = (op for op in range(len(topology.trace.ops)) if takes_back_its_value(topology, op))
    return {op for op in last if measured.of_op(target, op) is None}


def _difference_in(ops: Sequence[Op], op: int) -> int:
    """The difference that an op squares, or whose absolute value it takes; -1 if it does neither."""
    if op < 0 or ops[op].type == "SquaredDifference":
        return op
    given = {edge.op for edge in ops[op].inputs if edge.op >= 0}
    square = ops[op].type in ("Square", "Abs") or (ops[op].type == "Pow" and (constant_of(ops[op], 1) or 0.0) > 1.0)
    square = square or (ops[op].type == "Mul" and [edge.op for edge in ops[op].inputs] == [*given] * 2)
    if ops[op].type == "Pow":
        given = {edge.op for edge in ops[op].inputs if edge.input == 0 and edge.op >= 0}
    return next((each for each in given if ops[each].type == "Sub"), -1) if square and len(given) == 1 else -1


def _is_of_itself(ops: Sequence[Op], difference: int) -> bool:
    """Whether both sides of a difference are the same tensor."""
    sides = [(edge.op, edge.output) for edge in ops[difference].inputs] if difference >= 0 else []
    return len(sides) == 2 and sides[0] == sides[1] and sides[0][0] >= 0


def _is_of_both_sides(suspect: Suspect, difference: int) -> bool:
    """Whether the variable is on both sides of a difference, and both get a gradient by the structure of the step."""
    topology = suspect.topology
    sides = [edge.op for edge in topology.trace.ops[difference].inputs] if difference >= 0 else []
    gets = topology.gradient(suspect.target).hops
    return len(set(sides)) == 2 and all(side >= 0 and gets[side] >= 0 and suspect.leads_to(side) for side in sides)


# A lower bound of distances that only protects the square root after it.
_FLOOR = 1e-5

_ADDING_UP = frozenset({"Sum", "Mean", "Reshape", "Squeeze", "ExpandDims", "Identity", "Sqrt"})


def _square_below_a_floor(suspect: Suspect) -> int:
    """The square of a difference, if none of its sums reaches the tiny lower bound that keeps them from zero, as the
    zeros after `maximum` show: both sides are equal, or almost. -1 if there is no such bound."""
    ops = suspect.topology.trace.ops
    floor = max((constant_of(suspect.op, side) or 0.0) for side in (0, 1)) if suspect.op.type == "Maximum" else 0.0
    if not 0 < floor <= _FLOOR:
        return -1
    op = next((edge.op for edge in suspect.op.inputs if edge.op >= 0), -1)
    op = suspect.topology.origin(op, _ADDING_UP)
    return op if _is_of_both_sides(suspect, _difference_in(ops, op)) else -1


def same_on_both_sides(suspect: Suspect) -> Verdict | None:
    """A value is compared with the output of the same network for the same input: nothing before the difference, or the
    ratio, learns. An offset that both sides contain does not count, because its weights do learn.

    The evidence is that gradients of the same size come back on both paths to each layer.
    """
    users = takers_of(suspect, suspect.state.variable)
    join = where_ways_join(suspect, users) if len(users) == 2 else -1
    if join < 0 or suspect.type_of(join) not in ("Sub", "RealDiv"):
        return None
    same = suspect.measured.once(("same sides", suspect.target, join), lambda: _is_mirrored(suspect, join))
    return Verdict("gradient_cancellation", "error", join, _same) if same else None


def _is_mirrored(suspect: Suspect, join: int) -> bool:
    """Whether every variable before the op is used on two paths, at which gradients of the same size arrive, and gets a
    gradient of zero; one of them must be the weight of a product."""
    topology, measured, target = suspect.topology, suspect.measured, suspect.target
    before, weights = topology.made_by(join), 0
    for entry in topology.trace.variable_gradients:
        if entry.target != target or before.isdisjoint(topology.readers[entry.variable]):
            continue
        gradient, takers = measured.of_variable(entry), takers_of(suspect, entry.variable)
        ways = [report for op in takers if (report := measured.of_op(target, op)) is not None]
        if gradient is None or len(ways) != 2 or not ways[0].max_abs or gradient.max_abs > NOISE * ways[0].max_abs:
            return False
        if any(abs(a - b) > NOISE * a for a, b in ((ways[0].norm, ways[1].norm), (ways[0].max_abs, ways[1].max_abs))):
            return False
        weights += any(suspect.type_of(op) in PRODUCTS for op in takers)
    return weights > 0


def _stopped(group: Group) -> Iterator[Candidate]:
    """Neither side of a comparison of a network with itself is a sample: what stands there as its input is data."""
    is_same = same_on_both_sides(group.suspect) is not None
    yield from stopped_side(group) if is_same else stopped_sample(group)


# The same name scope, entered again.
_NUMBERED = re.compile(r"_[0-9]+$")


def density_of_own_sample(suspect: Suspect) -> Verdict | None:
    """The stopped value only weights the density of a sample, as in a policy gradient, and the density is that of the
    distribution from which the sample was drawn: it cancels the effect of the variable. TensorFlow Probability
    remembers how a sample was made, so that no path is left.
    """
    if suspect.op.type not in STOPS:
        return None
    topology, once, target = suspect.topology, suspect.measured.once, suspect.target
    densities = once(("densities", target), lambda: _with_a_gradient(_made_by(topology, "log_prob"), topology, target))
    # Most models have no density, but a stop in each of many layers.
    if not densities:
        return None
    samples = once(("samples",), lambda: _made_by(topology, "sample"))
    reached = topology.reached_from(topology.readers[suspect.state.variable])
    drawn = {scope for op, scope in samples.items() if op in reached}
    own = [op for op, scope in densities.items() if scope in drawn]
    return Verdict("gradient_cancellation", "error", own[-1]) if own else None


def density_forgets_sample(suspect: Suspect) -> Verdict | None:
    """The path of the variable ends in a distribution's sample, and the loss is computed from that distribution's
    density: for its own sample, TensorFlow Probability remembers the noise and evaluates the density of that."""
    if suspect.culprit < 0:
        return None
    samples, densities = _made_by(suspect.topology, "sample"), _made_by(suspect.topology, "log_prob")
    scope = samples.get(suspect.culprit)
    own = [op for op, other in densities.items() if other == scope]
    return Verdict("gradient_cancellation", "warning", own[-1]) if scope is not None and own else None


def _with_a_gradient(ops: dict[int, str], topology: Topology, target: int) -> dict[int, str]:
    arrives = topology.gradient(target).hops
    return {op: scope for op, scope in ops.items() if arrives[op] >= 0}


def _made_by(topology: Topology, method: str) -> dict[int, str]:
    """The distribution of each op that a method of a distribution created. Its scopes are numbered, `Normal_1`."""
    parts = ((op, each.name.partition(f"/{method}/")) for op, each in enumerate(topology.trace.ops))
    return {op: scope for op, (before, found, _) in parts if found and (scope := _NUMBERED.sub("", before))}


def message_and_fix(group: Group) -> Text:
    """The fix for a density at its own sample: stop the sample, by its name if the user's line shows it."""
    if takes_back_its_value(group.suspect.topology, group.culprit):
        return Template(
            SIZE + "{op} ends a sum that both adds and subtracts the same value, so that its gradients cancel. A "
            "straight-through estimator adds the difference of two values, and stops all of it.",
            "Stop the difference: `x + {lib}.stop_gradient(q - x)`, where `q` is the discrete value.",
        )(group)
    names, stopped = fields(group), _stopped_sample(group)
    why = "several paths lead to the loss, and their gradients cancel at {op}."
    if not group.suspect.state.receives:
        asked = call_on(group.source.code, "log_prob") if group.source is not None else None
        names["head"] = asked.head if asked is not None else "log_prob"
        why = (
            "`{head}`{place} is evaluated at a sample of the same distribution, where {their} effect on the sample "
            "cancels."
        )
    if not stopped and not _made_by(group.suspect.topology, "log_prob"):
        fix = (
            "Stop one of the paths, `{lib}.stop_gradient(...)`, if it is meant as a constant, such as the old "
            "log-probability in a ratio. Otherwise remove it, or apply a function that is not linear, such as a "
            "square, before what the paths lead to is summed."
        )
        return Text(filled(SIZE + why, names), filled(fix, names))
    fix = (
        "Stop one of the paths: for a score function, `log_prob(tf.stop_gradient(sample))`, so that `{variable}` "
        "affects "
    )
    if stopped:
        if group.suspect.state.receives:
            why = "{op} cancels {their} effect on the sample."
        why += (
            " This is correct: a sample `loc + scale * noise` moves with its `loc`, so its density is that of the "
            "noise, whatever `loc` is."
        )
        fix = (
            "Nothing to fix if you differentiate the expectation of something else that is computed from the sample. "
            f"For a score function, or the density of a fixed value, stop the sample: `{stopped}`, so that its "
            "distribution affects "
        )
    return Text(filled(SIZE + why, names), filled(fix, names) + "the loss only through the density.")


def _same(group: Group) -> Text:
    call, names = call_of(group), fields(group)
    sides = call.arguments if call is not None and call.is_operator else ()
    other = sides[old_side(*sides)] if len(sides) == 2 else "..."
    why = "both sides of {op} are computed from the same values with the same weights, and their gradients cancel."
    held = f"`{namespace(group)}.stop_gradient({other})`"
    return Text(
        filled(SIZE + why, names),
        f"Stop the gradient of one side: {held}, or use a value stored before the update.",
    )


def _stopped_sample(group: Group) -> str:
    """The user's `log_prob(sample)`, or their `sample - mean` with a sample that was computed from the mean, with the
    sample stopped; only the sample if their line does not show the difference; empty if there is neither."""
    source, op = group.source, group.op
    if source is None or op is None:
        return ""
    density = call_on(source.code, "log_prob")
    if density is not None:
        return braces(density.with_subject(f"tf.stop_gradient({density.subject})"))
    call = call_of(group)
    sample = sample_in(group.suspect.topology, group.culprit)
    if sample < 0:
        return ""
    differences = calls_in_order(source.code, "-")
    if call is None or any(each.text != call.text and each.text in call.text for each in differences):
        return "tf.stop_gradient(sample)"
    sides = [*call.arguments]
    sides[sample] = f"tf.stop_gradient({sides[sample]})"
    return braces(f"{sides[0]} - {sides[1]}")


CAUSE = Cause(
    name="gradient_cancellation",
    meaning="the variable, or a value computed from it, is used more than once, each use has a gradient, and their sum "
    "is close to zero; or it is cut off where TensorFlow Probability evaluates the density of a distribution at its "
    "own sample, and the loss uses that density only multiplied by a stopped value",
    severity="warning; error where it is cut off",
    fix="`tf.stop_gradient` on one of the paths, such as the sample",
    text=message_and_fix,
    leaves_noise=True,
    edits=(through_difference, _stopped),
)
