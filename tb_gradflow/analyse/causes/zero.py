"""Gradients that are exactly zero: the op whose incoming gradient is not, and whose outgoing one is."""

from __future__ import annotations

from math import prod

from tb_gradflow.analyse.causes.no_derivative import ROUNDING
from tb_gradflow.analyse.evidence import Suspect, Verdict
from tb_gradflow.analyse.measured import is_zero
from tb_gradflow.record.schema import Trace

_RELU = frozenset({"Relu", "Relu6", "ReluN"})
_SQUASHING = frozenset({"Sigmoid", "Tanh", "Erf", "Erfc", "Softsign", "Softplus"})
_SOFTMAX = frozenset({"Softmax", "LogSoftmax", "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"})
_CLIPPING = frozenset({"ClipByValue", "Minimum", "Maximum"})
_BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase", "Select", "SelectV2"})
_PRODUCTS = frozenset(
    {"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Mul", "Einsum", "Conv1D", "Conv2D", "Conv3D"}
    | {"DepthwiseConv2dNative", "XlaDotV2"}
)
_ROUTING = frozenset(
    {"ConcatV2", "Concat", "Pack", "Unpack", "Slice", "StridedSlice", "Split", "SplitV", "GatherV2", "GatherNd", "Pad"}
    | {"PadV2", "BroadcastTo", "Tile"}
)
_PASSED_THROUGH = frozenset(
    {"Identity", "Reshape", "Cast", "Transpose", "Squeeze", "ExpandDims", "MaxPool", "AvgPool", "Mul", "SelectV2"}
    | {"SpaceToBatchND", "BatchToSpaceND", "ConcatV2", "Mean", "Max"}
)
_NORMALISING = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})

# Half precision has nothing between zero and 6e-8; what comes in above this is not brought there by one op.
_HALF_AT_RISK_BELOW = 1e-3

_NEARBY = 12


def branch_not_taken(suspect: Suspect) -> Verdict | None:
    """The branch of a `tf.cond` that this step skipped, or the side of a `tf.where` that it never chose."""
    return Verdict("branch_not_taken", "info") if suspect.op.type in _BRANCHES else None


def softmax_single_class(suspect: Suspect) -> Verdict | None:
    """Softmax over an axis of length one is always one."""
    single = any(tensor.shape and tensor.shape[-1] == 1 for tensor in suspect.op.outputs[:1])
    return Verdict("softmax_single_class", "error") if suspect.op.type in _SOFTMAX and single else None


def saturation_softmax(suspect: Suspect) -> Verdict | None:
    """A softmax so sure of itself that its slope rounds to zero."""
    return Verdict("saturation_softmax", "warning") if suspect.op.type in _SOFTMAX else None


def saturation_sigmoid(suspect: Suspect) -> Verdict | None:
    """Sigmoid or tanh so far out that its slope rounds to zero."""
    return Verdict("saturation_sigmoid", "warning") if suspect.op.type in _SQUASHING else None


def saturation_quant_range(suspect: Suspect) -> Verdict | None:
    """The ends of a fake quantiser's range learn only from values outside it."""
    return Verdict("saturation_quant_range", "warning") if suspect.op.type.startswith("FakeQuant") else None


def saturation_clip(suspect: Suspect) -> Verdict | None:
    """Every value lies outside the limits of a clip."""
    clips = suspect.op.type in _CLIPPING or "clip" in (suspect.op.api or "")
    # Margins that are all kept are limits too: a hinge loss of zero is what one trains for.
    learned = suspect.measured.is_learned(suspect.target)
    return Verdict("saturation_clip", "info" if learned else "warning") if clips else None


def dead_relu(suspect: Suspect) -> Verdict | None:
    """A ReLU that no input of this step activates; or a product with the zeros that such a ReLU puts out."""
    if suspect.op.type in _RELU:
        return Verdict("dead_relu", "error")
    if suspect.op.type not in _PRODUCTS:
        return None
    relu = _behind(suspect, _RELU)
    trace = suspect.topology.trace
    above = [edge.op for edge in trace.ops[relu].inputs if edge.op >= 0] if relu >= 0 else []
    gradients = [suspect.measured.of_op(suspect.target, op) for op in above]
    dead = any(gradient is not None and is_zero(gradient) for gradient in gradients)
    return Verdict("dead_relu", "error") if dead else None


def _behind(suspect: Suspect, types: frozenset[str]) -> int:
    """The op of one of `types` that makes the other factor of a product, seen through ops that keep zeros."""
    trace = suspect.topology.trace
    stack = [edge.op for edge in suspect.op.inputs if edge.op >= 0 and edge.op != suspect.producer]
    seen: set[int] = set()
    while stack:
        op = stack.pop()
        if trace.ops[op].type in types:
            return op
        if trace.ops[op].type in _PASSED_THROUGH and op not in seen:
            seen.add(op)
            stack.extend(edge.op for edge in trace.ops[op].inputs if edge.op >= 0)
    return -1


def recurrent_weight_single_step(suspect: Suspect) -> Verdict | None:
    """The state weights of a recurrent layer that sees one time step: they multiply a state of zeros."""
    name = suspect.topology.trace.variables[suspect.state.variable].name
    if not name.endswith("recurrent_kernel"):
        return None
    readers = suspect.topology.readers[suspect.state.variable]
    products = [user for op in readers for user in suspect.topology.onward(op) if suspect.type_of(user) in _PRODUCTS]
    return Verdict("recurrent_weight_single_step", "warning", min(products, default=suspect.culprit))


def zero_initialised(suspect: Suspect) -> Verdict | None:
    """A product with a variable that is all zeros. If that one learns, this one will, from the next step on."""
    if suspect.op.type not in _PRODUCTS or suspect.measured.variables is None:
        return None
    others = [edge.op for edge in suspect.op.inputs if edge.op >= 0 and edge.op != suspect.producer]
    factors = _variables_behind(suspect, others) - {suspect.state.variable}
    zeros = [factor for factor in sorted(factors) if _began_at_zero(suspect, factor)]
    if not zeros:
        return None
    if any(learns(suspect, factor) for factor in zeros):
        return Verdict("zero_init_by_design", "info")
    return Verdict("zero_init_product", "error")


def learns(suspect: Suspect, variable: int) -> bool:
    """Whether a gradient other than zero arrives at a variable."""
    entries = [entry for entry in suspect.topology.trace.variable_gradients if entry.variable == variable]
    gradients = [suspect.measured.of_variable(entry) for entry in entries]
    return any(gradient is not None and gradient.max_abs > 0 for gradient in gradients)


def _began_at_zero(suspect: Suspect, variable: int) -> bool:
    """The norm is taken after the step: one that equals the step's own length began at zero."""
    assert suspect.measured.variables is not None
    after, moved = (float(value) for value in suspect.measured.variables[variable, :2])
    return after == 0 or abs(after - moved) <= 1e-6 * after


def _variables_behind(suspect: Suspect, ops: list[int]) -> set[int]:
    """The variables that a factor is zero with: those it is, or is a product of."""
    trace, found = suspect.topology.trace, set()
    stack = list(ops)
    for op in stack:  # grows while it is walked
        read = trace.ops[op].reads
        if read is not None:
            found.add(read)
        elif trace.ops[op].type in _PRODUCTS or trace.ops[op].type in _PASSED_THROUGH:
            stack.extend(edge.op for edge in trace.ops[op].inputs if edge.op >= 0 and edge.op not in stack)
    return found


def detour_around_rounding(suspect: Suspect) -> Verdict | None:
    """The ways around a rounded value cancel, `x - (x - floor(x))`, and the way through it has no derivative."""
    if suspect.op.type not in ("Sub", "AddV2", "Add", "Neg"):
        return None
    influence = suspect.topology.influence(suspect.target).hops
    near = list(suspect.topology.readers[suspect.state.variable])
    for op in near:  # grows while it is walked
        near.extend(each for each in suspect.topology.onward(op) if each not in near and len(near) < _NEARBY)
        for consumer, _ in suspect.topology.consumers[op]:
            if influence[consumer] >= 0 and suspect.type_of(consumer) in ROUNDING:
                return Verdict("nondiff_rounding", "error", consumer)
    return None


def fp16_underflow(suspect: Suspect) -> Verdict | None:
    """A small gradient in half precision, under the smallest number it has."""
    half = any(tensor.dtype == "float16" for tensor in suspect.op.outputs)
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    small = incoming is not None and incoming.max_abs < _HALF_AT_RISK_BELOW
    return Verdict("fp16_underflow", "error") if half and small else None


def degenerate_normalisation(suspect: Suspect) -> Verdict | None:
    """Normalised over a single element: the result is the same whatever comes in.

    The evidence is a mean, of the normaliser or beside the op, that averages as many elements as it puts out.
    """
    trace, topology = suspect.topology.trace, suspect.topology
    scope = _normaliser_around(suspect)
    if suspect.op.type in _NORMALISING:
        return Verdict("degenerate_normalisation", "error")
    beside = [suspect.culprit, *(consumer for consumer, _ in topology.consumers[suspect.producer])]
    if scope:
        beside += [op for op in topology.by_type.get("Mean", ()) if trace.ops[op].name.startswith(scope)]
    return Verdict("degenerate_normalisation", "error") if any(_averages_one(trace, op) for op in beside) else None


def _normaliser_around(suspect: Suspect) -> str:
    """Name scope of the normalisation layer that the culprit is in; empty if it is in none."""
    name = suspect.op.name
    layers = suspect.topology.trace.layers
    scopes = (layer.scope + "/" for layer in layers if layer.type.endswith("Normalization"))
    return next((scope for scope in scopes if name.startswith(scope)), "")


def _averages_one(trace: Trace, index: int) -> bool:
    op = trace.ops[index]
    if op.type != "Mean" or not op.inputs or op.inputs[0].op < 0 or not op.outputs:
        return False
    given = trace.ops[op.inputs[0].op].outputs
    before = given[op.inputs[0].output].shape if op.inputs[0].output < len(given) else None
    after = op.outputs[0].shape
    if before is None or after is None or min((*before, *after), default=1) < 0:
        return False
    return len(before) > 0 and prod(before) == prod(after)


def mask_multiplies_to_zero(suspect: Suspect) -> Verdict | None:
    """A mask or weight made of data is zero wherever this variable has a say."""
    if suspect.topology.has_factor_of_data(suspect.culprit):
        return Verdict("mask_multiplies_to_zero", "warning")
    if suspect.op.type not in _ROUTING:
        return None
    # The slice that comes from this variable is zero in a tensor that is not: the mask sits further on.
    for op in suspect.topology.gradient(suspect.target).from_op(suspect.culprit)[1:]:
        if suspect.topology.has_factor_of_data(op):
            return Verdict("mask_multiplies_to_zero", "info", op)
    return None


def zero_gradient(suspect: Suspect) -> Verdict | None:
    """Zero for a reason that the measured values do not tell: the op is named.

    Information only where the variable is used several times: the uses may cancel by design, as those of the last
    bias of a critic do in the difference of its means.
    """
    learned = suspect.measured.is_learned(suspect.target)
    shared = len(suspect.topology.readers[suspect.state.variable]) > 1
    return Verdict("zero_gradient", "info" if learned or shared else "warning")
