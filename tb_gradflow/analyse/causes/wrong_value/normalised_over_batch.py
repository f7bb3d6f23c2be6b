"""The outputs of a layer are normalised over the whole batch, instead of each row on its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.settings import along_rows
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import is_square
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.probabilities import SOFTMAX_LOSSES
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.record.schema import Trace

_KERNELS = frozenset({"MatMul", "Conv2D"})
_BETWEEN = frozenset(
    {"BiasAdd", "AddV2", "Relu", "LeakyRelu", "Elu", "Tanh", "Sigmoid", "Erf", "Mul", "Identity", "Reshape", "Cast"}
)
_HANDING_ON = frozenset({"Maximum", "AddV2", "Identity", "Reshape", "Cast", "Squeeze"})
_TO_A_LOSS = _HANDING_ON | {"Transpose", "Minimum", "Log", "RealDiv"}
_DIVIDING_BY = {"Rsqrt": ("Mul",), "Sqrt": ("RealDiv", "DivNoNan")}


def rule(suspect: Suspect) -> Verdict | None:
    """`tf.math.l2_normalize(x)` without an axis, or `x / tf.norm(x)`, of what a layer computes for each row. A weight
    that is normalised as a whole does not come from data, and a power is a mean. Or `tf.nn.softmax(x, axis=0)` of such
    rows, whose results a cross-entropy takes for the probabilities of each row."""
    if suspect.target < 0:
        return None
    topology, readers = suspect.topology, suspect.topology.readers[suspect.state.variable]
    arrives = topology.gradient(suspect.target).hops
    for value, op in suspect.measured.once(
        "over the batch", lambda: [*_whole_norms(topology), *_softmaxes_over_rows(topology)]
    ):
        if arrives[op] >= 0 and not topology.made_by(value).isdisjoint(readers):
            return Verdict("normalised_over_batch", "warning", op)
    return None


def _whole_norms(topology: Topology) -> Iterator[tuple[int, int]]:
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
                    yield value, op


def _softmaxes_over_rows(topology: Topology) -> Iterator[tuple[int, int]]:
    """Rows of class scores, with the softmax over them: TensorFlow transposes a matrix and normalises its last axis.
    Similarities of all rows with all others are no scores of a layer, and are compared along both axes."""
    trace = topology.trace
    for op in topology.by_type.get("Softmax", ()):
        turned = trace.ops[op].inputs[0].op if trace.ops[op].inputs else -1
        if turned < 0 or trace.ops[op].backward or trace.ops[turned].type != "Transpose":
            continue
        value, shape = trace.ops[turned].inputs[0].op, trace.ops[turned].outputs[0].shape
        if value < 0 or shape is None or len(shape) != 2 or not _is_of_rows(topology, value):
            continue
        if any(_takes_probabilities(trace, user) for user in _on_to_a_loss(topology, op)):
            yield value, op


def _on_to_a_loss(topology: Topology, softmax: int) -> Iterator[int]:
    def onward(op: int) -> Sequence[int]:
        return topology.onward(op) if op == softmax or topology.trace.ops[op].type in _TO_A_LOSS else ()

    return walked([softmax], onward)


def _takes_probabilities(trace: Trace, op: int) -> bool:
    """Whether an op is a cross-entropy, which gets logarithms, or multiplies a logarithm by what may be labels."""
    inputs = [edge.op for edge in trace.ops[op].inputs if edge.op >= 0]
    product = trace.ops[op].type == "Mul" and any(trace.ops[each].type == "Log" for each in inputs)
    return trace.ops[op].type in SOFTMAX_LOSSES or product


def _reached(topology: Topology, start: int) -> Iterator[int]:
    """An op, what hands its result on, and the next ops behind."""

    def onward(op: int) -> Sequence[int]:
        return topology.onward(op) if op == start or topology.trace.ops[op].type in _HANDING_ON else ()

    return walked([start], onward)


def _is_single(shape: tuple[int, ...] | None) -> bool:
    return shape is not None and all(size == 1 for size in shape)


def _is_of_rows(topology: Topology, value: int) -> bool:
    """Whether a value is what a layer returns: the product of a batch with a kernel, and functions of each element."""
    ops = topology.trace.ops

    def back(op: int) -> list[int]:
        return [edge.op for edge in ops[op].inputs if edge.op >= 0] if ops[op].type in _BETWEEN else []

    products = [op for op in walked([value], back) if ops[op].type in _KERNELS]
    return any(
        ops[op].data and any(edge.op >= 0 and ops[edge.op].reads is not None for edge in ops[op].inputs)
        for op in products
    )


def message_and_fix(group: Group) -> Text:
    if group.op is not None and group.op.type == "Softmax":
        return Template(
            "{they_get} a gradient that mixes the rows of the batch: {op} normalises over the rows, `axis=0`, so that "
            "the probabilities of one class add up to one over the whole batch, and those of a row do not.",
            "Normalise each row on its own, `axis=-1`.",
        )(group)
    return Template(
        "{they_get} a gradient that mixes the rows of the batch: {op} divides all rows by one norm, that of the whole "
        "batch. Each row then depends on the others, and the larger the batch, the smaller they are.",
        "Normalise each row on its own, `tf.math.l2_normalize({x}, axis=-1)`.",
    )(group)


CAUSE = Cause(
    name="normalised_over_batch",
    meaning="what a layer computes for each row is divided by its norm over all rows, as by `tf.math.l2_normalize(x)` "
    "without `axis`: each row depends on the others, and all become smaller the more there are. Or a cross-entropy "
    "gets a softmax over the rows, `axis=0`",
    severity="warning",
    fix="normalise each row: `axis=-1`",
    text=message_and_fix,
    plight="a gradient that mixes the rows of the batch",
    told_at_once=True,
    edits=(along_rows,),
)
