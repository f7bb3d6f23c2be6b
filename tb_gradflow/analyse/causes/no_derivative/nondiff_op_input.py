"""An op has a derivative, but none for this input."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.images import sampled_between
from tb_gradflow.analyse.edits.written_out import by_arithmetic, slopes_by_difference
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import is_float, tensor_of
from tb_gradflow.analyse.words.fields import SIZE, ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.record.schema import Edge, Op


def rule(suspect: Suspect) -> Verdict | None:
    """The op has a gradient, for other inputs than this one."""
    others = suspect.op.differentiable or any(edge.passes == "yes" for edge in suspect.op.inputs)
    for_others = any(edge.passes == "none" and (others or edge.input > 0) for edge in suspect.edges)
    return Verdict("nondiff_op_input", "error") if for_others else None


def partly_cut(suspect: Suspect) -> Verdict | None:
    """Only part of the gradient arrives: the value is also an input for which TensorFlow has no derivative, of an op
    that has one for its other inputs."""
    if suspect.target < 0:
        return None
    topology = suspect.topology
    places = suspect.measured.once(("partly cut", suspect.target), lambda: _inputs_without_gradient(suspect))
    for producer, op in places:
        if not (topology.made_by(producer) | {producer}).isdisjoint(topology.readers[suspect.state.variable]):
            return Verdict("nondiff_op_input", "info", op)
    return None


def _inputs_without_gradient(suspect: Suspect) -> list[tuple[int, int]]:
    topology, ops = suspect.topology, suspect.topology.trace.ops
    arrives = topology.gradient(suspect.target).hops
    return [
        (edge.op, place)
        for place, op in enumerate(ops)
        if arrives[place] >= 0 and op.differentiable and op.custom_gradient is None and not op.backward
        for edge in op.inputs
        if edge.passes == "none" and not _is_moving_statistic(op, edge)
        if (tensor := tensor_of(topology.trace, edge)) is not None and is_float(tensor.dtype)
    ]


def _is_moving_statistic(op: Op, edge: Edge) -> bool:
    """Whether an input is the moving mean or variance of a batch normalisation. A layer that is applied twice in a
    step reads what its first call stored there, which nobody means to differentiate; in training it is not used."""
    return op.type.startswith("FusedBatchNorm") and edge.input >= 3


def range_without_gradient(suspect: Suspect) -> Verdict | None:
    """The ends of the range in which a value is quantised: TensorFlow's gradient for them is always zero, inside and
    outside of the range, unlike that of its fake quantisers (`QuantizeAndDequantizeV4GradientOp`)."""
    ends = suspect.op.type.startswith("QuantizeAndDequantize") and all(edge.input in (1, 2) for edge in suspect.edges)
    return Verdict("nondiff_op_input", "error") if ends else None


def message_and_fix(group: Group) -> Text:
    """On the only path, or on one of several: then part of the gradient arrives, and it may point in another
    direction."""
    fix = (
        "Write this part with plain arithmetic (for a resampling op, the bilinear `(1 - w) * left + w * right`), or "
        "give {fn} a gradient with `tf.custom_gradient`."
    )
    why = "{op} has a gradient for its other inputs, but not for the input that depends on {them}."
    if group.op is not None and group.op.type.startswith("QuantizeAndDequantize"):
        return Template(
            ZERO + "{op} passes a gradient to the values that it rounds, but its gradient for the ends of the range is "
            "always zero.",
            "Use `tf.quantization.fake_quant_with_min_max_vars({x}, low, high)`, whose ends learn from the values "
            "outside the range; or learn the step size: `v = {bx} / step`, then `step * (v + "
            "tf.stop_gradient(tf.round(v) - v))`.",
        )(group)
    if group.verdict.severity == "info":
        return Template("{they_get} only part of the gradient: " + why, fix)(group)
    return Template(SIZE + why, fix)(group)


CAUSE = Cause(
    name="nondiff_op_input",
    meaning="the op has a gradient, but not for this input",
    severity="error; info where another path carries part of the gradient",
    fix="write it with plain arithmetic",
    text=message_and_fix,
    verb="cuts {them} off",
    edits=(by_arithmetic, sampled_between, slopes_by_difference),
)
