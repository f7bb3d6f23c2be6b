"""Probabilities where a cross-entropy expects logits."""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.analyse.graph.op_sets import SAME_VALUES
from tb_gradflow.analyse.graph.topology import Topology

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
    ops, op = topology.trace.ops, loss
    while True:
        first = next((edge.op for edge in ops[op].inputs if edge.input == 0), -1)
        if first < 0 or ops[first].type in _PROBABILITIES:
            return first
        if ops[first].type not in SAME_VALUES:
            return -1
        op = first
