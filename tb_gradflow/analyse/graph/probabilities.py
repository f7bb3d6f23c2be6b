"""Probabilities where a cross-entropy expects logits, and cross-entropies that are written out."""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.analyse.graph.op_sets import SAME_VALUES
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import Op

_PROBABILITIES = frozenset({"Softmax", "Sigmoid"})
SOFTMAX_LOSSES = frozenset({"SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"})

# `tf.nn.sigmoid_cross_entropy_with_logits` is written with several ops, in a scope of this name. Of its arguments, only
# the logits are negated.
SIGMOID_LOSS = "logistic_loss"
_OF_LOGITS = frozenset({"Neg"})

LOGITS = 0
"""Which input they are, of the op that compares them with labels."""


def applied_twice(topology: Topology) -> Iterator[tuple[int, int]]:
    """The cross-entropies whose logits are probabilities, each with the op that makes those."""
    for kind in sorted(SOFTMAX_LOSSES | _OF_LOGITS):
        for op in topology.by_type.get(kind, ()):
            made = probabilities_before(topology, op)
            if made >= 0 and (kind in SOFTMAX_LOSSES or SIGMOID_LOSS in topology.trace.ops[op].name):
                yield op, made


def probabilities_before(topology: Topology, loss: int) -> int:
    """The softmax or sigmoid that computes the logits of a cross-entropy; -1 if there is none."""
    made = topology.origin(topology.first_input(loss), SAME_VALUES - _PROBABILITIES)
    return made if made >= 0 and topology.trace.ops[made].type in _PROBABILITIES else -1


def is_binary(topology: Topology, product: int) -> bool:
    """Whether a product of labels and a logarithm, or of labels and logits, belongs to a binary cross-entropy."""
    ops = topology.trace.ops
    if SIGMOID_LOSS in ops[product].name:
        return True
    logs = [edge.op for edge in ops[product].inputs if edge.op >= 0 and _is_log(ops[edge.op])]
    # Its other term has `log(1 - p)`, where a small number may be added to both.
    near = [user for log in logs for edge in ops[log].inputs if edge.op >= 0 for user in _sums_near(topology, edge.op)]
    return any(ops[op].type == "Sub" for op in near) and any(
        _is_log(ops[user]) and user not in logs for op in near for user in topology.onward(op)
    )


def _sums_near(topology: Topology, op: int) -> Iterator[int]:
    ops = topology.trace.ops
    start = [op, *(edge.op for edge in ops[op].inputs if edge.op >= 0 and ops[op].type in _SUMS)]
    return (each for each in walked(start, lambda at: _sums_among(topology, at)) if ops[each].type in _SUMS)


def _sums_among(topology: Topology, op: int) -> list[int]:
    return [user for user in topology.onward(op) if topology.trace.ops[user].type in _SUMS]


_SUMS = frozenset({"Sub", "AddV2"})


def _is_log(op: Op) -> bool:
    return op.type in ("Log", "Log1p")
