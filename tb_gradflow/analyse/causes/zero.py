"""Gradients that are exactly zero: the op whose incoming gradient is not, and whose outgoing one is."""

from __future__ import annotations

from tb_gradflow.analyse.causes.goal import is_at_goal
from tb_gradflow.analyse.causes.no_derivative import ROUNDING
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS, began_at_zero
from tb_gradflow.analyse.graph.op_sets import SOFTMAX
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import Op

_SQUASHING = frozenset({"Sigmoid", "Tanh", "Erf", "Erfc", "Softsign", "Softplus"})
_CLIPPING = frozenset({"ClipByValue", "Minimum", "Maximum"})
BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase", "Select", "SelectV2", "Merge", "Switch"})
_DECOMPOSITIONS = frozenset({"Svd", "SelfAdjointEigV2", "Eig", "Qr"})

_CROSS_ENTROPIES = frozenset({"SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"})

# Half precision has nothing between zero and 6e-8; what comes in above this is not brought there by one op.
_HALF_AT_RISK_BELOW = 1e-3
_SMALLEST_HALF = 6e-8

_NEARBY = 12

# What is left of a float32 where it is taken from itself, and of gradients of about one.
_ROUNDING = 1e-6
_FAINT = 1e-5


def branch_not_taken(suspect: Suspect) -> Verdict | None:
    """The branch of a `tf.cond` that this step skipped, or the side of a `tf.where` that it never chose."""
    return Verdict("branch_not_taken", "info") if suspect.op.type in BRANCHES else None


def nothing_left(suspect: Suspect) -> Verdict | None:
    """TensorFlow's own cross entropy at its goal: prediction and label are the same in every digit."""
    within = suspect.op.type in _CROSS_ENTROPIES or "/logistic_loss" in suspect.op.name
    return Verdict("zero_gradient", "info") if within and suspect.measured.is_learned(suspect.target) else None


def softmax_single_class(suspect: Suspect) -> Verdict | None:
    """Softmax over an axis of length one is always one."""
    single = suspect.culprit in suspect.topology.single_class_ops
    return Verdict("softmax_single_class", "error") if single else None


def single_class_unseen(suspect: Suspect) -> Verdict | None:
    """The same where the loss hides it: it takes the logits, and the model's own output is always one. Or where the
    softmax rounds what is one, so that noise comes back."""
    topology = suspect.topology
    if suspect.target < 0:
        return None
    influence = topology.influence(suspect.target).hops
    for op in topology.single_class_ops:
        unseen = influence[op] < 0 or topology.trace.ops[op].type != "Softmax"
        if unseen and not topology.made_by(op).isdisjoint(topology.readers[suspect.state.variable]):
            return Verdict("softmax_single_class", "error", op)
        if not unseen and is_noise_of(suspect, op):
            return Verdict("softmax_single_class", "error", op)
    return None


def is_noise_of(suspect: Suspect, op: int) -> bool:
    """Whether all that a variable gets is what rounding has left at an op whose result is always the same."""
    topology, target = suspect.topology, suspect.target
    if suspect.state.gradient is None or suspect.state.gradient.max_abs > _FAINT:
        return False
    given = [edge.op for edge in topology.trace.ops[op].inputs]
    arriving = suspect.measured.of_op(target, op)
    left = suspect.measured.of_op(target, given[0]) if given else None
    if arriving is None or left is None or left.max_abs > _ROUNDING * arriving.max_abs:
        return False
    return not topology.made_by(op).isdisjoint(topology.readers[suspect.state.variable])


def saturation_softmax(suspect: Suspect) -> Verdict | None:
    """A softmax so sure of itself that its slope rounds to zero."""
    return Verdict("saturation_softmax", "warning") if suspect.op.type in SOFTMAX else None


def saturation_sigmoid(suspect: Suspect) -> Verdict | None:
    """Sigmoid or tanh so far out that its slope rounds to zero, or the straight lines that stand for them."""
    straight = any(word in (suspect.op.api or "") for word in ("hard_sigmoid", "hard_tanh"))
    return Verdict("saturation_sigmoid", "warning") if straight or suspect.op.type in _SQUASHING else None


def saturation_quant_range(suspect: Suspect) -> Verdict | None:
    """The ends of a fake quantiser's range learn only from values outside it."""
    return Verdict("saturation_quant_range", "warning") if suspect.op.type.startswith("FakeQuant") else None


def saturation_clip(suspect: Suspect) -> Verdict | None:
    """Every value lies outside the limits of a clip."""
    clips = suspect.op.type in _CLIPPING or "clip" in (suspect.op.api or "")
    if clips and _hands_on_the_other_side(suspect):
        return None
    if suspect.op.type == "Relu6" and _lets_something_out(suspect):
        return Verdict("saturation_clip", "warning")
    # Margins that are all kept are limits too: a hinge loss of zero is what one trains for.
    learned = is_at_goal(suspect)
    return Verdict("saturation_clip", "info" if learned else "warning") if clips else None


def degenerate_decomposition(suspect: Suspect) -> Verdict | None:
    """Singular or eigenvalues that repeat: their derivative divides by differences, and where these are zero
    TensorFlow answers zero."""
    return Verdict("degenerate_decomposition", "error") if suspect.op.type in _DECOMPOSITIONS else None


def _hands_on_the_other_side(suspect: Suspect) -> bool:
    """Whether the op chooses between two values that the variable is in, and the other one gets a gradient: it is no
    limit then, and what makes zero of that gradient lies further on."""
    topology, readers = suspect.topology, suspect.topology.readers[suspect.state.variable]
    for edge in suspect.op.inputs:
        given = suspect.measured.of_op(suspect.target, edge.op) if edge.op not in (-1, suspect.producer) else None
        if given is not None and given.max_abs > 0:
            return not (topology.made_by(edge.op) | {edge.op}).isdisjoint(readers)
    return False


def _lets_something_out(suspect: Suspect) -> bool:
    """Whether what the op puts out is not zero: a weight that it is multiplied with gets a gradient."""
    topology = suspect.topology
    queue = list(topology.onward(suspect.culprit))
    for op in queue:  # grows while it is walked
        if suspect.type_of(op) in PRODUCTS:
            reads = [topology.trace.ops[edge.op].reads for edge in topology.trace.ops[op].inputs if edge.op >= 0]
            if any(suspect.measured.learns(variable) for variable in reads if variable is not None):
                return True
        elif len(queue) < _NEARBY:
            queue.extend(topology.onward(op))
    return False


def detour_around_rounding(suspect: Suspect) -> Verdict | None:
    """The ways around a rounded value cancel, `x - (x - floor(x))`, and the way through it has no derivative."""
    if suspect.op.type not in ("Sub", "AddV2", "Add", "Neg") and not _takes_away_twice(suspect):
        return None
    influence = suspect.topology.influence(suspect.target).hops
    near = list(suspect.topology.readers[suspect.state.variable])
    for op in near:  # grows while it is walked
        near.extend(each for each in suspect.topology.onward(op) if each not in near and len(near) < _NEARBY)
        for consumer, _ in suspect.topology.consumers[op]:
            if influence[consumer] >= 0 and suspect.type_of(consumer) in ROUNDING:
                return Verdict("nondiff_rounding", "error", consumer)
    return None


def _takes_away_twice(suspect: Suspect) -> bool:
    """Whether what was not measured in front of the suspect is an `x - (x - y)`."""
    ops = suspect.topology.trace.ops
    if suspect.exact or suspect.type_of(suspect.producer) != "Sub":
        return False
    given = {edge.input: edge for edge in ops[suspect.producer].inputs if edge.op >= 0}
    inner = ops[given[1].op].inputs if 1 in given and suspect.type_of(given[1].op) == "Sub" else ()
    taken = next((edge.op for edge in inner if edge.input == 0), -1)
    return 0 in given and given[0].op == taken >= 0


def fp16_underflow(suspect: Suspect) -> Verdict | None:
    """A small gradient in half precision, under the smallest number it has."""
    return Verdict("fp16_underflow", "error") if _is_small_half(suspect, _HALF_AT_RISK_BELOW) else None


def fp16_flush(suspect: Suspect) -> Verdict | None:
    """A gradient that half precision cannot hold at all."""
    return Verdict("fp16_underflow", "error") if _is_small_half(suspect, _SMALLEST_HALF) else None


def _is_small_half(suspect: Suspect, limit: float) -> bool:
    ops = suspect.topology.trace.ops
    places = [suspect.culprit, *([suspect.producer] if suspect.producer >= 0 else [])]
    half = any(tensor.dtype == "float16" for place in places for tensor in ops[place].outputs)
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    return half and incoming is not None and 0 < incoming.max_abs < limit


def part_left_out(suspect: Suspect) -> Verdict | None:
    """Of a complex number the loss uses the real part alone, or the imaginary one: what the other is made of gets
    zero."""
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
    """Whether the op multiplies with what no variable has a part in. The zeros say that this was real: a factor with an
    imaginary part would have brought one part into the other."""
    each = topology.trace.ops[op]
    return each.type in PRODUCTS and sum(topology.of_variables[edge.op] for edge in each.inputs if edge.op >= 0) == 1


# These keep real and imaginary parts apart.
_PART_BY_PART = frozenset(
    {"Identity", "Cast", "Reshape", "Transpose", "Squeeze", "ExpandDims", "AddV2", "Add", "Sub", "Neg", "Sum", "Mean"}
    | {"ConcatV2", "Pack", "Unpack", "StridedSlice", "Slice", "GatherV2", "BroadcastTo", "Conj"}
)


def zero_gradient(suspect: Suspect) -> Verdict | None:
    """Zero for a reason that the measured values do not tell: the op is named.

    Information only where the variable is used several times: the uses may cancel by design, as those of the last
    bias of a critic do in the difference of its means. And in the first step of all, of what begins as zeros: a
    network without offsets is odd, and over points on both sides of the origin its errors add up to nothing.
    """
    measured, variable = suspect.measured, suspect.state.variable
    shared = len(suspect.topology.readers[variable]) > 1
    begins = measured.step == 0 and began_at_zero(measured, variable)
    return Verdict("zero_gradient", "info" if is_at_goal(suspect) or shared or begins else "warning")
