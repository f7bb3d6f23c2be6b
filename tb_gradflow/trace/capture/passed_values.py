"""Values of the forward pass, in every recorded step: they show where two runs begin to differ. Only inputs of
products, convolutions and the like, which TensorFlow's optimizer merges with nothing in front of them, and which a step
keeps for its backward pass anyway.

Of a large tensor, some elements are enough: a difference in the forward pass is seldom one of a single element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.capture.collector import Collector
from tb_gradflow.trace.graph.flat_ops import FlatOp, consumers
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.reach import influenced_by, needed_for
from tb_gradflow.trace.numerics.fusion import is_constant, may_be_merged_into
from tb_gradflow.trace.numerics.later import wide
from tb_gradflow.trace.numerics.statistics_table import Block, Row

MOST_VALUES = 64
"""Of more, some are left out, evenly."""

_SAMPLE = 4096
"""Elements of a tensor, about: so many take a few microseconds."""

_TAKERS = frozenset(
    {
        "MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum",
        "Conv2D", "Conv3D", "DepthwiseConv2dNative", "MaxPool", "AvgPool",
        "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MeasuredInput:
    """An input of an op that is measured.

    Attributes:
        flattener: The graph that contains the op.
        op: Which of its flat ops takes the input.
        input: Which of its inputs.
        row: Its statistics.
        beyond: What of labels is beyond limits, see `ValueRange`.
    """

    flattener: Flattener
    op: int
    input: int
    row: Row
    beyond: tuple[Row, ...] = ()


def root_flattener(collector: Collector) -> Flattener | None:
    """That of the step's own graph; None if it takes no gradient."""
    return next((call.flattener for call in collector.calls if call.flattener.graph is collector.root), None)


def passed_values(collector: Collector, block: Block, *, exact: bool) -> list[MeasuredInput]:
    """Adds to `block` the inputs of such ops. `exact`: see `fusion`."""
    flattener = root_flattener(collector)
    if flattener is None:
        return []
    found: list[MeasuredInput] = []
    known = list(_inputs(collector, exact))
    for number, place, symbol in known[:: -(-len(known) // MOST_VALUES) or 1]:
        value = collector.symbols.actual(symbol)
        if value is not None:
            found.append(MeasuredInput(flattener, number, place, block.measure(value, of=_sampled)))
    return found


def _inputs(collector: Collector, exact: bool) -> Iterator[tuple[int, int, Any]]:
    flattener = root_flattener(collector)
    assert flattener is not None
    needed, moved = with_losses(collector, flattener)
    seen: set[int] = set()
    for number in sorted(needed & moved):
        op = flattener.ops[number]
        if op.type not in _TAKERS or not is_own(op):
            continue
        for place, symbol in enumerate(op.op.inputs):
            if id(symbol) in seen or not symbol.dtype.is_floating or is_constant(symbol.op):
                continue
            if not (exact and may_be_merged_into(symbol, op.op)):
                seen.add(id(symbol))
                yield number, place, symbol


def with_losses(collector: Collector, flattener: Flattener) -> tuple[set[int], set[int]]:
    """The ops that the losses depend on, and those that depend on a variable."""
    ops = flattener.ops
    targets = [ref.op for call in collector.calls if call.flattener is flattener for ref in call.targets]
    read = [number for number, op in enumerate(ops) if op.reads is not None]
    return needed_for(ops, targets), influenced_by(ops, consumers(ops), read)


def is_own(op: FlatOp) -> bool:
    """Whether an op of the forward pass runs in the step's own graph, and takes a number."""
    return not (op.nested or op.backward or op.known is not None or not op.op.inputs[0].dtype.is_floating)


def _sampled(tensor: Any) -> Any:
    """float32 `[6]`, in the order of `PASSED_STATISTICS`."""
    some = sample(tensor)
    finite = tf.where(tf.math.is_finite(some), some, tf.zeros_like(some))
    sums = tf.sqrt(2 * tf.nn.l2_loss(finite)), tf.reduce_sum(finite)
    return tf.concat([tf.zeros([2]), tf.cast(tf.stack(sums), tf.float32), tf.zeros([2])], 0)


def sample(tensor: Any) -> Any:
    """Elements of a tensor at equal distances, in one dimension, as `wide` numbers."""
    flat = tf.reshape(tensor, [-1])
    # Odd, so that not all elements are of one channel.
    return wide(flat[:: tf.bitwise.bitwise_or(tf.maximum(tf.size(flat) // _SAMPLE, 1), 1)])
