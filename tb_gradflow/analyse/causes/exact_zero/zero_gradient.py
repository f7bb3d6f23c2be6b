"""The gradient is zero for none of the known reasons: the fallback for zeros."""

from __future__ import annotations

import math

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.optimum import is_at_goal, is_last, is_settled
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS, began_at_zero
from tb_gradflow.analyse.graph.op_sets import ROWS, SHIFTS, constant_of
from tb_gradflow.analyse.graph.probabilities import SOFTMAX_LOSSES
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.words.broken import logsumexp
from tb_gradflow.analyse.words.fields import ZERO, Template, fields
from tb_gradflow.analyse.words.names import Group, Text, call_of
from tb_gradflow.analyse.words.phrases import (
    AS_AT_ITS_END,
    AT_A_MINIMUM,
    CHECK,
    braces,
    nothing_left_to_learn,
    write_left_alone,
)
from tb_gradflow.analyse.words.steep import less_steep, made_large
from tb_gradflow.record.schema import Op


def rule(suspect: Suspect) -> Verdict | None:
    """Zero for a reason that the measured values do not show: the op is named. Information only if the variable is used
    several times: the uses may cancel by design, as those of the last bias of a critic do in the difference of its
    means. The same in the very first step, for a variable that starts at zero: a network without offsets is odd, and
    its errors for points on both sides of the origin add up to zero. The same where rows are in balance. Nothing if the
    step loses what it writes to an array, which is reported there: the array remains zero.
    """
    measured, variable, trace = suspect.measured, suspect.state.variable, suspect.topology.trace
    if measured.once("written in vain", lambda: any(write_left_alone(trace, op) for op in range(len(trace.ops)))):
        return None
    shared = len(suspect.topology.readers[variable]) > 1
    begins = measured.step == 0 and began_at_zero(measured, variable)
    return Verdict(
        "zero_gradient", "info" if is_at_goal(suspect) or shared or begins or in_balance(suspect) else "warning"
    )


def at_a_minimum(suspect: Suspect) -> Verdict | None:
    """The training has come to a minimum of its loss, and rounding leaves nothing of the sum."""
    settled = is_settled(suspect) and not in_balance(suspect)
    return Verdict("zero_gradient", "info", NO_OP) if settled else None


def in_balance(suspect: Suspect) -> bool:
    """Whether the gradient of an offset is a sum of values of the same size, such as those of an absolute error: it is
    zero if as many rows lie above their target as below.
    """
    arriving = suspect.measured.of_op(suspect.target, suspect.culprit)
    is_offset = len(suspect.topology.trace.variables[suspect.state.variable].shape) < 2
    if not is_offset or suspect.op.type not in SHIFTS or arriving is None or not arriving.max_abs:
        return False
    return math.isclose(arriving.mean_abs, arriving.max_abs * (1 - arriving.zero_fraction), rel_tol=1e-5)


def given_zero(suspect: Suspect) -> Verdict | None:
    """Only zeros were given. Finite differences with a small step are zero if the function is piecewise constant."""
    return Verdict("zero_gradient", "info" if suspect.measured.is_learned(suspect.target) else "warning", NO_OP)


def nothing_left(suspect: Suspect) -> Verdict | None:
    """TensorFlow's own cross entropy at its goal: prediction and label are the same in every digit. Or the loss has
    come down to next to nothing, and what is flat are the loss or the activation in front of it."""
    measured, target = suspect.measured, suspect.target
    within = suspect.op.type in SOFTMAX_LOSSES or "/logistic_loss" in suspect.op.name
    # A product may have a factor of zero, which makes the loss zero as well.
    flat = suspect.op.type not in PRODUCTS and is_last(suspect.topology, target, suspect.culprit)
    come_down = flat and measured.has_come_down(target)
    return Verdict("zero_gradient", "info") if (within and measured.is_learned(target)) or come_down else None


def part_left_out(suspect: Suspect) -> Verdict | None:
    """The loss uses only the real or only the imaginary part of a complex number: the values that the other part is
    computed from get zero."""
    made = suspect.op.type == "Complex" or (suspect.op.type == "Cast" and _is_complex(suspect.op))
    if not made:
        return None
    topology, ops = suspect.topology, suspect.topology.trace.ops
    influence = topology.influence(suspect.target).hops
    kept = {"Cast": 0, "Real": 0, "Imag": 1}
    taken, queue, seen = set[int](), [suspect.culprit], {suspect.culprit}
    for op in queue:  # grows while it is walked
        for user in {user for user, _ in topology.consumers[op] if influence[user] >= 0}:
            if ops[user].type in kept and not _is_complex(ops[user]):
                taken.add(user)
            elif ops[user].type not in _PART_BY_PART and not _has_one_factor(topology, user):
                return None
            elif user not in seen:
                seen.add(user)
                queue.append(user)
    sides = {kept[ops[user].type] for user in taken}
    left_out = {edge.input for edge in suspect.edges} if suspect.producer >= 0 else set()
    return Verdict("zero_gradient", "warning", min(taken)) if sides and sides.isdisjoint(left_out) else None


def _is_complex(op: Op) -> bool:
    return any(tensor.dtype.startswith("complex") for tensor in op.outputs)


def _has_one_factor(topology: Topology, op: int) -> bool:
    """Whether the op multiplies by a value that depends on no variable. The zeros show that this value was real: an
    imaginary part would have mixed the two parts."""
    each = topology.trace.ops[op]
    return each.type in PRODUCTS and sum(topology.of_variables[edge.op] for edge in each.inputs if edge.op >= 0) == 1


# These keep real and imaginary parts apart.
_PART_BY_PART = frozenset(
    {"Identity", "Cast", "Reshape", "Transpose", "Squeeze", "ExpandDims", "AddV2", "Add", "Sub", "Neg", "Sum", "Mean"}
    | {"ConcatV2", "Pack", "Unpack", "StridedSlice", "Slice", "GatherV2", "BroadcastTo", "Conj"}
)


def message_and_fix_of_given(group: Group) -> Text:
    if group.verdict.severity == "info":
        return Template(
            "{they_get} a gradient of exactly zero, and the loss is close to zero: there is nothing left to learn "
            "from this batch.",
            "Nothing to fix.",
        )(group)
    return Template(
        "{they_have} been given a gradient of exactly zero{line}. How it was computed is not recorded.",
        f"Check how it is computed. Finite differences are zero where a function rounds, or where the step is too "
        f"small to change the loss; {CHECK}, and suggests a good step.",
    )(group)


def message_and_fix(group: Group) -> Text:
    if group.verdict.severity == "info" and at_a_minimum(group.suspect) is not None:
        return Template(ZERO + AT_A_MINIMUM, AS_AT_ITS_END)(group)
    in_part = group.suspect.type_of(group.suspect.culprit) in ("Complex", "Cast") and group.verdict.culprit >= 0
    if in_part and group.op is not None:
        kept, lost = ("imaginary", "real") if group.op.type == "Imag" else ("real", "imaginary")
        return Template(
            ZERO + f"the values computed from {{them}} are the {lost} part of complex numbers, and {{op}} keeps only "
            f"the {kept} part.",
            "Use both parts in the loss: `tf.abs(z)`, or `tf.concat([tf.math.real(z), tf.math.imag(z)], axis=-1)`.",
        )(group)
    if group.op is not None and group.op.type == "Cumprod":
        call, x = call_of(group), fields(group)["bx"]
        kept = call.with_subject(f"{x} + 1e-06") if call is not None else f"tf.math.cumprod({x} + 1e-06)"
        return Template(
            ZERO + "the input of {op} contains a zero, where TensorFlow computes a gradient of zero, whatever the "
            "derivative is.",
            "Keep the input away from zero: `"
            + braces(kept)
            + "`; or sum logarithms, `tf.exp(tf.cumsum(log_factors))`.",
        )(group)
    if group.op is not None and group.op.type in ROWS and group.suspect.exact:
        return Template(
            ZERO + "{op} selects a part that does not depend on {them}.",
            "Check the index, and select the part that does.",
        )(group)
    if group.verdict.severity != "info" and (steep := _underflows(group)) is not None:
        return steep
    why = "a gradient arrives at the output of {op}, but is zero at its input"
    if not group.suspect.exact:
        why = "it becomes zero on the way to {them} from {op}, where no gradients were recorded"
    elif group.op is not None and group.op.type in ("Mul", "MatMul", "BatchMatMulV2", "Einsum", "Conv2D"):
        single = all(group.trace.variables[each].shape in ((), (1,)) for each in group.variables)
        why = "in this step {op} multiplies by zeros" + (", or its gradients sum to zero" if single else "")
    if group.verdict.severity == "info" and is_at_goal(group.suspect):
        return nothing_left_to_learn(group)
    if in_balance(group.suspect):
        return Template(
            ZERO + "the gradients at {op} all have the same size, as those of an absolute error, and in this step as "
            "many are positive as negative.",
            "Nothing to fix.",
        )(group)
    return Template(ZERO + why + ".", "Check the inputs of {op} in this step.")(group)


# From this exponent on, a power of a number below one half is less than a thousandth.
_HIGH_POWER = 10.0


def _underflows(group: Group) -> Text | None:
    """For exponentials and high powers, which are flat where their result underflows."""
    if group.op is None or group.op.type not in ("Exp", "Pow"):
        return None
    factor, scaled = made_large(group), "Scale the input until it is around one."
    told = f" {factor[0].upper()}{factor[1:]}, which is too steep." if factor else ""
    if group.op.type == "Exp":
        why = "{op} underflows to zero: its input is below -88 for every element that gets a gradient."
        if not factor and _is_summed_in_a_logarithm(group):
            scaled = (
                f"Compute the logarithm of the sum from logarithms: `{logsumexp(group)}(log_terms, axis=-1)`, where "
                "`log_terms` are the logarithms of the summands, the exponent among them."
            )
        return Template(ZERO + why + told, less_steep(factor) + "." if factor else scaled)(group)
    power = constant_of(group.op, 1)
    if power is None or power < _HIGH_POWER:
        return None
    why = f"{{op}} raises its input to the power of {power:.3g}, which underflows to zero for inputs well below one."
    return Template(ZERO + why + told, "Use a smaller power, or scale the input until it is around one.")(group)


def _is_summed_in_a_logarithm(group: Group) -> bool:
    """Whether a logarithm is taken of a sum of the results."""
    topology = group.suspect.topology
    reached = topology.ahead(topology.onward(group.culprit), _IN_A_SUM)
    return {"Log", "Sum"} <= {group.trace.ops[op].type for op in reached}


_IN_A_SUM = frozenset({"Mul", "RealDiv", "Sum", "Mean", "AddV2", "Add", "Reshape", "Squeeze", "Identity"})


CAUSE = Cause(
    name="zero_gradient",
    meaning="the gradient is zero, and no other cause explains it: the finding names the op at which it becomes zero",
    severity="warning; info if the loss is zero, the variable is used several times, or rows are in balance",
    fix="check its inputs",
    text=message_and_fix,
    text_of_given=message_and_fix_of_given,
)
