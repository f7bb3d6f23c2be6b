"""Predictions and labels of different rank, so that the loss compares every prediction with every label."""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import passes_gradient
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.record.schema import Edge

_DIFFERENCES = frozenset({"Sub", "SquaredDifference"})
_BENT = frozenset({"Square", "Abs", "Pow", "SquaredDifference"})
_MEANS = frozenset({"Mean", "Sum"})
Shape = tuple[int, ...] | None

# Through these a difference becomes the mean error of a loss, whatever else is added to the loss.
_AVERAGED = _BENT | _MEANS | {"Mul", "RealDiv", "DivNoNan", "AddV2", "AddN", "Identity", "Reshape", "Cast"}

# Code that uses one of these, or gets its shape from one, compares all pairs on purpose.
_SPREADING = frozenset({"ExpandDims", "Reshape", "Transpose", "BroadcastTo", "Tile", "StridedSlice"})

_SPREAD_IN_CODE = ("None", "newaxis", "expand_dims", "reshape", "transpose", "outer", "meshgrid")


def rule(suspect: Suspect) -> Verdict | None:
    """A prediction of shape `[batch, 1]` and labels of shape `[batch]`, or the reverse: the difference has the shape
    `[batch, batch]`, and its mean is least where every prediction is the mean of all labels.

    Only a difference that is averaged directly is reported: intended distances of all pairs go through a minimum or an
    exponential.
    """
    if suspect.target < 0:
        return None
    topology, readers = suspect.topology, suspect.topology.readers[suspect.state.variable]
    for op in suspect.measured.once(("broadcast", suspect.target), lambda: list(_broadcast(topology, suspect.target))):
        if not topology.made_by(op).isdisjoint(readers):
            return Verdict("labels_broadcast", "warning", op)
    return None


def _broadcast(topology: Topology, target: int) -> Iterator[int]:
    for op in sorted(place for kind in _DIFFERENCES for place in topology.by_type.get(kind, ())):
        sides = [edge for edge in topology.trace.ops[op].inputs if edge.op >= 0]
        learned = [edge for edge in sides if passes_gradient(edge) and _comes_to_a_variable(topology, edge.op)]
        if (
            len(learned) == 1
            and _is_spread(topology, op, learned[0])
            and _is_averaged(topology, op, target)
            and not _on_purpose(topology, op, [edge.op for edge in sides])
        ):
            yield op


def _is_averaged(topology: Topology, op: int, target: int) -> bool:
    way = [topology.trace.ops[place].type for place in topology.gradient(target).from_op(op)]
    return set(way[1:]) <= _AVERAGED and not _BENT.isdisjoint(way) and not _MEANS.isdisjoint(way)


def _comes_to_a_variable(topology: Topology, start: int) -> bool:
    ops = topology.trace.ops

    def back(op: int) -> list[int]:
        return [edge.op for edge in ops[op].inputs if passes_gradient(edge)]

    return any(ops[op].reads is not None for op in walked([start], back))


def _is_spread(topology: Topology, op: int, side: Edge) -> bool:
    """Whether a batch is compared with a batch, and one of the two has an additional last axis of length one. If the
    batch size is known only at run time, the two shapes decide: labels of the shape `[?, ?]` may be `[batch, 1]`, those
    of the shape `[?]` are not.
    """
    difference = topology.trace.ops[op]
    result = difference.outputs[0].shape if difference.outputs else None
    if difference.input_count != 2 or difference.constants or result is None:
        return False
    if len(result) != 2 or result[0] != result[1] or result[0] in (0, 1):
        return False
    batch, shape, other = result[0], _shape_of(topology, side), _shape_beside(topology, op, side)
    if other is None:
        return batch > 0 and shape in ((batch, 1), (batch,))
    return (shape, other) in (((batch, 1), (batch,)), ((batch,), (batch, 1)))


def _shape_of(topology: Topology, edge: Edge) -> Shape:
    outputs = topology.trace.ops[edge.op].outputs
    return outputs[edge.output].shape if edge.output < len(outputs) else None


def _shape_beside(topology: Topology, op: int, side: Edge) -> Shape:
    """The shape of an op's other input; None if it is not known, as in older logs."""
    ways = [_shape_of(topology, edge) for edge in topology.trace.ops[op].inputs if edge.input != side.input]
    given = [each.shape for each in topology.trace.ops[op].given if each.input != side.input]
    return next(iter((*ways, *given)), None)


def _on_purpose(topology: Topology, op: int, sides: list[int]) -> bool:
    trace = topology.trace
    source = trace.ops[op].source
    code = trace.sources[source].code if source is not None else ""
    return any(trace.ops[side].type in _SPREADING for side in sides) or any(word in code for word in _SPREAD_IN_CODE)


def message_and_fix(group: Group) -> Text:
    shape = group.op.outputs[0].shape if group.op is not None and group.op.outputs else None
    told = ", ".join("batch" if size < 0 else str(size) for size in shape or ())
    return Template(
        "{they_get} a gradient that trains towards the mean of all labels: {op} computes a difference of shape "
        f"[{told}], every prediction minus every label, because one of the two has shape [batch, 1] and the other has "
        "shape [batch].",
        "Give both the same shape before you compare them, `y = tf.reshape(y, tf.shape(prediction))`; in Keras 3 the "
        "functions of `keras.losses` do that for you.",
    )(group)


CAUSE = Cause(
    name="labels_broadcast",
    meaning="a difference of shape `[batch, batch]` between a prediction of shape `[batch, 1]` and labels of shape "
    "`[batch]`, or the reverse, that is averaged directly; the gradient arrives, but trains towards the mean of all "
    "labels. Not reported where the line, or the op in front, shows that all pairs are compared on purpose",
    severity="warning",
    fix="give both the same shape",
    text=message_and_fix,
    plight="a gradient towards the mean of all labels",
)
