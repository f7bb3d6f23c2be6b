"""The outputs of a layer are normalised over the whole batch, instead of each row on its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.settings import along_rows
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import SAME_VALUES, is_square
from tb_gradflow.analyse.graph.probabilities import SOFTMAX_LOSSES
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.record.schema import Trace

_KERNELS = frozenset({"MatMul", "Conv2D"})
_BETWEEN = frozenset(
    {"BiasAdd", "AddV2", "Relu", "LeakyRelu", "Elu", "Tanh", "Sigmoid", "Erf", "Mul", "Identity", "Reshape", "Cast"}
)
_HANDING_ON = frozenset({"Maximum", "AddV2", "Identity", "Reshape", "Cast", "Squeeze"})
_TO_A_LOSS = _HANDING_ON | {"Transpose", "Minimum", "Log", "RealDiv"}
_PICKS = frozenset({"Mul", "GatherNd", "GatherV2"})
_PICKED_ON = _PICKS | _TO_A_LOSS - {"Log"} | {"Sum"}
_QUOTIENTS = frozenset({"RealDiv", "DivNoNan"})
_DIVIDING_BY = {"Rsqrt": ("Mul",), "Sqrt": ("RealDiv", "DivNoNan")}


def rule(suspect: Suspect) -> Verdict | None:
    """`tf.math.l2_normalize(x)` without an axis, or `x / tf.norm(x)`, of what a layer computes for each row. A weight
    that is normalised as a whole does not come from data, and a power is a mean. Or `x / tf.reduce_max(x)` of such
    rows. Or `tf.nn.softmax(x, axis=0)` of them, whose results a cross-entropy takes for the probabilities of each row;
    or which are only the output, while the cross-entropy of Keras takes the scores in front of it."""
    if suspect.target < 0:
        return None
    topology = suspect.topology
    arrives = topology.gradient(suspect.target).hops
    for value, op, text in suspect.measured.once(
        "over the batch",
        lambda: [*_whole_norms(topology), *_largest_of_all(topology), *_softmaxes_over_rows(topology)],
    ):
        is_seen = arrives[op] >= 0 or is_beside(topology, op)
        if is_seen and arrives[value] >= 0 and suspect.leads_to(value):
            return Verdict("normalised_over_batch", "warning", op, text)
    return None


def _whole_norms(topology: Topology) -> Iterator[tuple[int, int, Template]]:
    """Rows that are computed from data and from variables, with the op that divides them by a norm over all of them."""
    trace = topology.trace
    for total in topology.by_type.get("Sum", ()):
        square = trace.ops[total].inputs[0].op if trace.ops[total].inputs else -1
        value = trace.ops[square].inputs[0].op if is_square(trace, square) else -1
        if value < 0 or trace.ops[total].backward or not _is_single(trace.ops[total].outputs[0].shape):
            continue
        rows = trace.ops[value].outputs[0].shape
        if rows is None or len(rows) < 2 or rows[0] == 1 or not _is_of_rows(topology, value):
            continue
        for root in _reached(topology, total):
            divisions = _DIVIDING_BY.get(trace.ops[root].type, ())
            norm = set(_reached(topology, root)) if divisions else set[int]()
            for op in topology.onward(value):
                if trace.ops[op].type in divisions and any(edge.op in norm for edge in trace.ops[op].inputs):
                    yield value, op, _BY_NORM


def _largest_of_all(topology: Topology) -> Iterator[tuple[int, int, Template]]:
    """Rows that are divided by the largest element of them all, with the op that divides them."""
    trace = topology.trace
    for largest in topology.by_type.get("Max", ()):
        value = trace.ops[largest].inputs[0].op if trace.ops[largest].inputs else -1
        rows = trace.ops[value].outputs[0].shape if value >= 0 else None
        is_whole = _is_single(trace.ops[largest].outputs[0].shape) and not trace.ops[largest].backward
        if not is_whole or rows is None or len(rows) < 2 or rows[0] == 1 or not _is_of_rows(topology, value):
            continue
        divisors = set(_reached(topology, largest))
        for op in topology.onward(value):
            if trace.ops[op].type in _QUOTIENTS and any(each.op in divisors for each in trace.ops[op].inputs):
                yield value, op, _BY_LARGEST


def _softmaxes_over_rows(topology: Topology) -> Iterator[tuple[int, int, Template]]:
    """Rows of class scores, with the softmax over them or over another axis than the classes: TensorFlow transposes a
    tensor and normalises its last axis. Similarities of all rows with all others are no scores of a layer, and are
    compared along both axes."""
    trace = topology.trace
    for op in topology.by_type.get("Softmax", ()):
        turned = trace.ops[op].inputs[0].op if trace.ops[op].inputs else -1
        if turned < 0 or trace.ops[op].backward or trace.ops[turned].type != "Transpose":
            continue
        value, shape = trace.ops[turned].inputs[0].op, trace.ops[turned].outputs[0].shape
        axis = _axis_of(topology, op)
        if value < 0 or shape is None or axis < 0 or not _is_of_rows(topology, value):
            continue
        takers = list(_on_to_a_loss(topology, op))
        is_taken = any(_takes_probabilities(trace, user) for user in takers) or _is_picked_from(topology, takers)
        if is_beside(topology, op):
            yield value, op, _output_over(axis)
        elif is_taken:
            yield value, op, _OVER_ROWS if axis == 0 else _over(axis)


def _axis_of(topology: Topology, softmax: int) -> int:
    """The axis over which a transposed softmax normalises; -1 if it is not known, or the last one."""
    ops = topology.trace.ops
    turned = ops[softmax].inputs[0].op
    value = ops[turned].inputs[0].op if ops[turned].type == "Transpose" and ops[turned].inputs else -1
    before, after = (ops[op].outputs[0].shape if op >= 0 else None for op in (value, turned))
    if not before or not after or len(before) != len(after) or len(before) < 2:
        return -1
    axes = [axis for axis, size in enumerate(before) if size == after[-1]]
    return axes[0] if len(axes) == 1 and axes[0] < len(before) - 1 and before[-1] == after[axes[0]] else -1


def is_beside(topology: Topology, op: int) -> bool:
    """Whether the loss does not see a softmax over another axis: it is only an output, and a cross-entropy takes the
    scores in front of it."""
    ops = topology.trace.ops
    turned = ops[op].inputs[0].op if op >= 0 and ops[op].type == "Softmax" and ops[op].inputs else -1
    if (
        turned < 0
        or ops[turned].type != "Transpose"
        or any(ops[user].type == "Transpose" for user in topology.onward(op))
    ):
        return False
    start = ops[turned].inputs[0].op
    # In a loss of `compile`: any other is given what the program gives it.
    return start >= 0 and any(
        ops[at].type in SOFTMAX_LOSSES and "compile_loss" in ops[at].name
        for at in (start, *topology.ahead(topology.onward(start), SAME_VALUES))
    )


def _is_picked_from(topology: Topology, takers: Sequence[int]) -> bool:
    """Whether labels pick one of the probabilities of each row, as a factor or as an index, and the loss is its
    logarithm."""
    ops = topology.trace.ops
    picks = [
        user
        for op in takers
        for user in topology.onward(op)
        if ops[user].type in _PICKS and sum(each.op >= 0 for each in ops[user].inputs) == 1
    ]
    return any(ops[op].type == "Log" for op in topology.ahead(picks, _PICKED_ON))


def _on_to_a_loss(topology: Topology, softmax: int) -> Iterator[int]:
    yield softmax
    yield from topology.ahead(topology.onward(softmax), _TO_A_LOSS)


def _takes_probabilities(trace: Trace, op: int) -> bool:
    """Whether an op is a cross-entropy, which gets logarithms, or multiplies a logarithm by what may be labels."""
    inputs = [edge.op for edge in trace.ops[op].inputs if edge.op >= 0]
    product = trace.ops[op].type == "Mul" and any(trace.ops[each].type == "Log" for each in inputs)
    return trace.ops[op].type in SOFTMAX_LOSSES or product


def _reached(topology: Topology, start: int) -> Iterator[int]:
    """An op, what hands its result on, and the next ops behind."""
    yield start
    yield from topology.ahead(topology.onward(start), _HANDING_ON)


def _is_single(shape: tuple[int, ...] | None) -> bool:
    return shape is not None and all(size == 1 for size in shape)


def _is_of_rows(topology: Topology, value: int) -> bool:
    """Whether a value is what a layer returns: the product of a batch with a kernel, and functions of each element."""
    ops = topology.trace.ops
    products = [op for op in topology.behind([value], _BETWEEN) if ops[op].type in _KERNELS]
    return any(
        ops[op].data and any(edge.op >= 0 and ops[edge.op].reads is not None for edge in ops[op].inputs)
        for op in products
    )


_MIXED = "{they_get} a gradient that mixes the rows of the batch: {op} "

_BY_NORM = Template(
    f"{_MIXED}divides all rows by one norm, that of the whole batch. Each row then depends on the others, and the "
    "larger the batch, the smaller they are.",
    "Normalise each row on its own, `tf.math.l2_normalize({x}, axis=-1)`.",
)
_BY_LARGEST = Template(
    f"{_MIXED}divides all rows by the largest element of the whole batch. What the model returns for a row then "
    "depends on the others.",
    "Divide each row by its own, `tf.reduce_max(..., axis=-1, keepdims=True)`.",
)
_OVER_ROWS = Template(
    f"{_MIXED}normalises over the rows, `axis=0`, so that the probabilities of one class add up to one over the whole "
    "batch, and those of a row do not.",
    "Normalise each row on its own, `axis=-1`.",
)


def _over(axis: int) -> Template:
    return Template(
        f"{{they_get}} a gradient towards other probabilities: {{op}} normalises over `axis={axis}`, so that the "
        "probabilities of one class add up to one over this axis, and those of the classes do not.",
        "Normalise the classes, `axis=-1`.",
    )


def _output_over(axis: int) -> Template:
    what = "the rows of the batch" if axis == 0 else "another axis than the classes"
    return Template(
        f"{{op}} normalises over {what}, `axis={axis}`: what the model returns for one class adds up to one over this "
        "axis, and what it returns for a row does not. Keras computes the loss from the scores in front of it, so the "
        "gradient is right; the predictions and what metrics get of them are not.",
        "Normalise the classes of each row, `axis=-1`.",
    )


CAUSE = Cause(
    name="normalised_over_batch",
    meaning="what a layer computes for each row is divided by its norm over all rows, as by `tf.math.l2_normalize(x)` "
    "without `axis`: each row depends on the others, and all become smaller the more there are. Or by the largest "
    "element of them all. Or a cross-entropy gets a softmax over the rows, `axis=0`, or over another axis than the "
    "classes; or this is the output, while the loss of Keras takes the scores in front of it",
    severity="warning",
    fix="normalise each row: `axis=-1`",
    text=_BY_NORM,
    plight="a gradient that mixes the rows of the batch",
    told_at_once=True,
    edits=(along_rows,),
)
