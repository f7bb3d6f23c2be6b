"""Predictions and labels of different rank, so that the loss compares every prediction with every label."""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.wiring import in_one_shape
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.comparisons import DIFFERENCES, PRODUCTS, is_averaged
from tb_gradflow.analyse.graph.op_sets import SAME_VALUES, passes_gradient, shape_along
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.probabilities import SIGMOID_LOSS
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.record.schema import Edge

Shape = tuple[int, ...] | None

# Code that uses one of these, or gets its shape from one, compares all pairs on purpose.
_SPREADING = frozenset({"ExpandDims", "Reshape", "Transpose", "BroadcastTo", "Tile", "StridedSlice"})

_SPREAD_IN_CODE = ("None", "newaxis", "expand_dims", "reshape", "transpose", "outer", "meshgrid")


def rule(suspect: Suspect) -> Verdict | None:
    """A prediction of shape `[batch, 1]` and labels of shape `[batch]`, or the reverse: the difference has the shape
    `[batch, batch]`, and its mean is least where every prediction is the mean of all labels.

    Only a difference that is averaged directly is reported: intended distances of all pairs go through a minimum or an
    exponential. The same for a product, such as labels times logarithms, or advantages times log-probabilities: its
    mean is the product of two means, so that no row counts with its own factor.

    Or several outputs for a row, each of which is compared with its one target, where that makes no sense: the outputs
    are those of a softmax, which add up to one, or the targets go from zero to their number, as classes do.
    """
    if suspect.target < 0:
        return None
    measured, target = suspect.measured, suspect.target
    for op in measured.once(("broadcast", target), lambda: list(_broadcast(suspect.topology, target))):
        if suspect.leads_to(op):
            return Verdict("labels_broadcast", "warning", op)
    for op in measured.once(("one for all", target), lambda: list(_one_for_all(measured, target))):
        if suspect.leads_to(op):
            return Verdict("labels_broadcast", "warning", op, _trained_towards_one)
    return None


def _broadcast(topology: Topology, target: int) -> Iterator[int]:
    computed = _from_variables(topology)
    for op in sorted(place for kind in DIFFERENCES | PRODUCTS for place in topology.by_type.get(kind, ())):
        sides = [edge for edge in topology.trace.ops[op].inputs if edge.op >= 0]
        learned = [edge for edge in sides if passes_gradient(edge) and edge.op in computed]
        # The weight of each row may be learned itself.
        are_rows = len(learned) == 1 or (len(learned) == 2 and _is_weighted(topology, op, learned))
        if (
            are_rows
            and _is_spread(topology, op, learned[0])
            and is_averaged(topology, op, target)
            and not _on_purpose(topology, op, [edge.op for edge in sides])
        ):
            yield op


def _is_weighted(topology: Topology, op: int, sides: list[Edge]) -> bool:
    """Whether one side of a product is a variable, and the other one is not."""
    ops = topology.trace.ops
    return ops[op].type in PRODUCTS and sum(ops[side.op].reads is not None for side in sides) == 1


_BINARY = (SIGMOID_LOSS, "binary_crossentropy/")


def _one_for_all(measured: Measured, target: int) -> Iterator[int]:
    topology = measured.topology
    for each in topology.trace.ranges:
        op = topology.trace.ops[each.op]
        if op.type not in DIFFERENCES and not (op.type == "Mul" and any(each in op.name for each in _BINARY)):
            continue
        count, targets = _outputs_for_one(topology, each.op, each.input), measured.range_of(each.op, each.input)
        if count > 1 and targets is not None and is_averaged(topology, each.op, target):
            side = next((edge.op for edge in op.inputs if edge.input != each.input), -1)
            if _is_softmax(topology, side) or targets == (0.0, count - 1.0):
                yield each.op


def _outputs_for_one(topology: Topology, op: int, place: int) -> int:
    """How many outputs of a row an op compares with the same number; 1 if each has a target of its own."""
    trace = topology.trace
    result = trace.ops[op].outputs[0].shape if trace.ops[op].outputs else None
    given = next((each.shape for each in trace.ops[op].given if each.input == place), None)
    if not result or given is None or len(given) != len(result) or given[-1] != 1:
        return 1
    return result[-1]


def _is_softmax(topology: Topology, op: int) -> bool:
    made = topology.origin(op, SAME_VALUES)
    return made >= 0 and topology.trace.ops[made].type == "Softmax"


def _from_variables(topology: Topology) -> set[int]:
    """The ops from which a gradient comes to a variable."""
    readers = [place for place, op in enumerate(topology.trace.ops) if op.reads is not None]
    return set(walked(readers, topology.onward))


def _is_spread(topology: Topology, op: int, side: Edge) -> bool:
    """Whether a batch is compared with a batch, and one of the two has an additional axis of length one behind it. If
    the batch size is known only at run time, the two shapes decide: labels of the shape `[?, ?]` may be `[batch, 1]`,
    those of the shape `[?]` are not.
    """
    difference = topology.trace.ops[op]
    result = difference.outputs[0].shape if difference.outputs else None
    if difference.input_count != 2 or difference.constants or result is None:
        return False
    if len(result) < 2 or result[0] != result[1] or result[0] in (0, 1):
        return False
    batch, rest = result[0], result[2:]
    shape, other = shape_along(topology.trace, side), _shape_beside(topology, op, side)
    spread, plain = (batch, 1, *rest), (batch, *rest)
    if other is None:
        return batch > 0 and not rest and shape in (spread, plain)
    return (shape, other) in ((spread, plain), (plain, spread))


def _shape_beside(topology: Topology, op: int, side: Edge) -> Shape:
    """The shape of an op's other input; None if it is not known, as in older logs."""
    ways = [shape_along(topology.trace, edge) for edge in topology.trace.ops[op].inputs if edge.input != side.input]
    given = [each.shape for each in topology.trace.ops[op].given if each.input != side.input]
    return next(iter((*ways, *given)), None)


def _on_purpose(topology: Topology, op: int, sides: list[int]) -> bool:
    trace = topology.trace
    source = trace.ops[op].source
    code = trace.sources[source].code if source is not None else ""
    return any(trace.ops[side].type in _SPREADING for side in sides) or any(word in code for word in _SPREAD_IN_CODE)


def _trained_towards_one(group: Group) -> Text:
    shape = group.op.outputs[0].shape if group.op is not None and group.op.outputs else None
    return Template(
        f"{{they_get}} a gradient that trains all {shape[-1] if shape else ''} outputs of a row towards one number: "
        "{op} compares each of them with the only target of the row, because the targets have the shape [batch, 1].",
        "If the targets are classes, use `sparse_categorical_crossentropy`, or make each of them a one-hot vector, "
        "`keras.utils.to_categorical(y)`; if they are numbers to predict, end the model with one unit and no "
        "activation.",
    )(group)


def message_and_fix(group: Group) -> Text:
    shape = group.op.outputs[0].shape if group.op is not None and group.op.outputs else None
    told = ", ".join("batch" if size < 0 else str(size) for size in shape or ())
    rest = "".join(f", {size}" for size in (shape or ())[2:])
    spread, plain = f"[batch, 1{rest}]", f"[batch{rest}]"
    if group.op is not None and group.op.type in PRODUCTS:
        return Template(
            "{they_get} a gradient that mixes the rows of the batch: {op} computes a result of shape "
            f"[{told}], every row of one side with every row of the other, because one has shape {spread} and "
            f"the other has shape {plain}. After the mean, each row counts with the average of all labels or weights "
            "instead of its own.",
            "Give both the same shape before you combine them, `tf.reshape(y, tf.shape(prediction))` or "
            "`tf.squeeze(prediction, -1)`.",
        )(group)
    return Template(
        "{they_get} a gradient that trains towards the mean of all labels: {op} computes a difference of shape "
        f"[{told}], every prediction minus every label, because one of the two has shape {spread} and the other has "
        f"shape {plain}.",
        "Give both the same shape before you compare them, `y = tf.reshape(y, tf.shape(prediction))`; in Keras 3 the "
        "functions of `keras.losses` do that for you.",
    )(group)


CAUSE = Cause(
    name="labels_broadcast",
    meaning="a difference of shape `[batch, batch]` between a prediction of shape `[batch, 1]` and labels of shape "
    "`[batch]`, or the reverse, that is averaged directly; the gradient arrives, but trains towards the mean of all "
    "labels. The same for a product of such shapes whose result is only added up, such as labels times logarithms. "
    "Or several outputs for a row that are all compared with its one target, where they are those of a softmax or the "
    "targets look like classes. Not reported where the line, or the op in front, shows that all pairs are compared on "
    "purpose",
    severity="warning",
    fix="give both the same shape",
    text=message_and_fix,
    plight="a gradient that mixes the rows of the batch",
    edits=(in_one_shape,),
)
