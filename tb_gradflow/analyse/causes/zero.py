"""Gradients that are exactly zero: the op whose incoming gradient is not, and whose outgoing one is."""

from __future__ import annotations

from tb_gradflow.analyse.evidence import Suspect, Verdict
from tb_gradflow.analyse.measured import is_zero

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


def branch_not_taken(suspect: Suspect) -> Verdict | None:
    """The branch of a `tf.cond` that this step skipped, or the side of a `tf.where` that it never chose."""
    return Verdict("branch_not_taken", "info") if suspect.op.type in _BRANCHES else None


def softmax_single_class(suspect: Suspect) -> Verdict | None:
    """Softmax over an axis of length one is always one."""
    single = any(tensor.shape and tensor.shape[-1] == 1 for tensor in suspect.op.outputs[:1])
    return Verdict("softmax_single_class", "error") if suspect.op.type in _SOFTMAX and single else None


def normalised_then_summed(suspect: Suspect) -> Verdict | None:
    """The loss sums what a softmax made to sum to one: every element gets the same gradient, and they cancel."""
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    if suspect.op.type != "Softmax" or incoming is None or not incoming.max_abs:
        return None
    uniform = incoming.zero_fraction == 0 and incoming.mean_abs >= incoming.max_abs * (1 - 1e-5)
    return Verdict("normalised_then_summed", "error") if uniform else None


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
    return Verdict("saturation_clip", "warning") if clips else None


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
    return Verdict("recurrent_weight_single_step", "warning") if name.endswith("recurrent_kernel") else None


def zero_initialised(suspect: Suspect) -> Verdict | None:
    """A product with a variable that is all zeros. If that one learns, this one will, from the next step on."""
    trace, variables = suspect.topology.trace, suspect.measured.variables
    if suspect.op.type not in _PRODUCTS or variables is None:
        return None
    for edge in suspect.op.inputs:
        factor = _variable_behind(suspect, edge.op)
        if factor is None or factor == suspect.state.variable:
            continue
        after, moved = (float(value) for value in variables[factor])
        # The norm is taken after the step: one that equals the step's own length began at zero.
        if abs(after - moved) > 1e-6 * max(after, 1e-30):
            continue
        entries = [entry for entry in trace.variable_gradients if entry.variable == factor]
        gradients = [suspect.measured.of_variable(entry) for entry in entries]
        learns = any(gradient is not None and gradient.max_abs > 0 for gradient in gradients)
        return Verdict("zero_init_by_design", "info") if learns else Verdict("zero_init_product", "error")
    return None


def _variable_behind(suspect: Suspect, op: int) -> int | None:
    trace = suspect.topology.trace
    while op >= 0:
        if trace.ops[op].reads is not None:
            return trace.ops[op].reads
        before = [edge.op for edge in trace.ops[op].inputs if edge.op >= 0]
        keeps = trace.ops[op].type in ("Cast", "Identity", "Reshape", "Transpose", "ExpandDims")
        op = before[0] if keeps and before else -1
    return None


def fp16_underflow(suspect: Suspect) -> Verdict | None:
    """A small gradient in half precision, under the smallest number it has."""
    half = any(tensor.dtype == "float16" for tensor in suspect.op.outputs)
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    small = incoming is not None and incoming.max_abs < _HALF_AT_RISK_BELOW
    return Verdict("fp16_underflow", "error") if half and small else None


def degenerate_normalisation(suspect: Suspect) -> Verdict | None:
    """Normalised over a single element: the result is the same whatever comes in."""
    return Verdict("degenerate_normalisation", "error") if suspect.op.type in _NORMALISING else None


def mask_multiplies_to_zero(suspect: Suspect) -> Verdict | None:
    """A mask or weight made of data is zero wherever this variable has a say."""
    if suspect.op.type == "Mul" and len([edge for edge in suspect.op.inputs if edge.op >= 0]) == 1:
        return Verdict("mask_multiplies_to_zero", "warning")
    if suspect.op.type not in _ROUTING:
        return None
    # The slice that comes from this variable is zero in a tensor that is not: the mask sits further on.
    trace = suspect.topology.trace
    for op in suspect.topology.gradient(suspect.target).from_op(suspect.culprit)[1:]:
        if trace.ops[op].type == "Mul" and len([edge for edge in trace.ops[op].inputs if edge.op >= 0]) == 1:
            return Verdict("mask_multiplies_to_zero", "info", op)
    return None


def zero_gradient(suspect: Suspect) -> Verdict | None:
    """Zero for a reason that the measured values do not tell: the op is named."""
    return Verdict("zero_gradient", "warning")
