"""The input ranges of functions that are not finite everywhere, in every recorded step: how a value reached the point
where it breaks shows only over the steps. And those of masked softmaxes, which are not meant to exclude every entry,
and of labels and other parts of the batch that are compared with results of the model, which may not reach them; and of
numbers of the batch of which a lookup in a table takes the integers, which may be fractions.

A value is left out if reading it could change how the step rounds (see `fusion`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.analyse.graph.comparisons import DIFFERENCES
from tb_gradflow.analyse.graph.op_sets import DIVISIONS, LOOKUPS, MASKS, SAME_VALUES, SINGULAR_INPUT, SOFTMAX_LOSS
from tb_gradflow.record.schema import OUTPUT_LIMITS
from tb_gradflow.trace.capture.collector import Collector
from tb_gradflow.trace.capture.passed_values import MeasuredInput, is_own, root_flattener, sample, with_losses
from tb_gradflow.trace.graph.flat_ops import FlatOp
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.numerics.fusion import may_be_merged_into
from tb_gradflow.trace.numerics.later import wide
from tb_gradflow.trace.numerics.statistics_table import Block, Row

MOST_RANGES = 64
"""Each range takes two passes over a tensor. With many normalisations there would be more of them, all similar."""

MOST_COMPARED = 8
"""So many comparisons with the batch are measured, the last ones before the loss."""

MOST_LOOKUPS = 8
"""In so many lookups."""


_LEAST_VARIANCE = 1e-30
"""Labels that are all equal have none."""

# How an embedding makes indices of integers: Keras counts negative ones from the end.
_NEAR = 12
_OF_INDICES = frozenset({"Cast", "Reshape", "ExpandDims", "Squeeze", "Identity", "SelectV2", "AddV2"})

_LOGISTIC_LOSS = "logistic_loss"
"""The scope in which `tf.nn.sigmoid_cross_entropy_with_logits` multiplies logits and labels."""


# TensorFlow merges a quotient with the root that it divides by.
_MERGED = frozenset({"Sqrt"})


def value_ranges(collector: Collector, block: Block, *, exact: bool) -> list[MeasuredInput]:
    """Adds to `block` the ranges of inputs that depend on variables. `exact`: see `fusion`."""
    flattener = root_flattener(collector)
    if flattener is None:
        return []
    found: list[MeasuredInput] = []
    rows: dict[int, tuple[Row, tuple[Row, ...]]] = {}
    seen: set[tuple[int, bool]] = set()
    for number, place in _singular(collector, flattener):
        symbol = flattener.ops[number].op.inputs[place]
        is_divisor = flattener.ops[number].type in DIVISIONS
        if (
            len(found) == MOST_RANGES
            or (id(symbol), is_divisor) in seen
            or (exact and _is_merged(symbol, flattener.ops[number].op))
        ):
            continue
        seen.add((id(symbol), is_divisor))
        value = collector.symbols.actual(symbol)
        if value is not None:
            row = block.measure(value, of=_magnitudes if is_divisor else _range)
            found.append(MeasuredInput(flattener, number, place, row))
    of_batch = [
        *islice(_compared(collector, flattener), MOST_COMPARED),
        *islice(_looked_up(collector, flattener), MOST_LOOKUPS),
    ]
    for number, place, argument in of_batch:
        value = collector.symbols.actual(argument)
        if value is not None:
            if id(argument) not in rows:
                rows[id(argument)] = (
                    block.measure(value, of=_range),
                    tuple(block.measure(value, of=functools.partial(_beyond, limits)) for limits in OUTPUT_LIMITS),
                )
            found.append(MeasuredInput(flattener, number, place, *rows[id(argument)]))
    return found


def _compared(collector: Collector, flattener: Flattener) -> Iterator[tuple[int, int, Any]]:
    """Where a result of the model is compared with a part of the batch, the last one first: the op, which of its inputs
    is that part, and the argument of the step that it is."""
    ops = flattener.ops
    needed, moved = with_losses(collector, flattener)
    for number in sorted(needed & moved, reverse=True):
        op = ops[number]
        if op.nested or op.backward or op.known is not None or len(op.op.inputs) != 2:
            continue
        from_model = {each.slot: each.ref.op for each in op.inputs if each.ref.op in moved}
        if len(from_model) != 1 or not _is_comparison(op, ops[next(iter(from_model.values()))]):
            continue
        place = 1 - next(iter(from_model))
        given = op.op.inputs[place]
        while given.op.type in SAME_VALUES:
            given = given.op.inputs[0]
        if _is_of_batch(collector, given) and (given.dtype.is_floating or given.dtype.is_integer):
            yield number, place, given


def _is_of_batch(collector: Collector, given: Any) -> bool:
    # The shadow of an eager step has small tensors as constants. A step of Keras 2 takes its batch itself.
    is_given = given.op.type == "Placeholder" or collector.symbols.actual(given) is not given
    return (is_given and not given.op.inputs) or given.op.type == "IteratorGetNext"


def _looked_up(collector: Collector, flattener: Flattener) -> Iterator[tuple[int, int, Any]]:
    """Where the rows of a table are looked up with a part of the batch that is not integer: the op, which of its inputs
    the indices are, and the argument of the step that they are made of."""
    ops = flattener.ops
    needed, moved = with_losses(collector, flattener)
    for number in sorted(needed & moved):
        op = ops[number]
        if op.type not in LOOKUPS or op.nested or op.backward or op.known is not None:
            continue
        behind = [op.op.inputs[1]]
        for each in behind:  # grows while it is walked
            if each.dtype.is_floating and _is_of_batch(collector, each):
                yield number, 1, each
                break
            if each.op.type in _OF_INDICES and len(behind) < _NEAR and not _is_moved(each):
                behind.extend(each.op.inputs)


def _is_moved(index: Any) -> bool:
    """Whether an index is a sum, other than that with which Keras counts negative ones from the end."""
    return index.op.type == "AddV2" and any(user.type != "SelectV2" for user in index.consumers())


def _is_comparison(op: FlatOp, of_model: FlatOp) -> bool:
    if op.type in (*DIFFERENCES, SOFTMAX_LOSS):
        return True
    return op.type == "Mul" and (of_model.type == "Log" or _LOGISTIC_LOSS in op.name)


def _singular(collector: Collector, flattener: Flattener) -> Iterator[tuple[int, int]]:
    ops = flattener.ops
    needed, moved = with_losses(collector, flattener)
    for number in sorted(needed & moved):
        op, place = ops[number], 0 if _is_masked(ops, number) else SINGULAR_INPUT.get(ops[number].type)
        if (
            place is not None
            and _is_singular(op)
            and any(each.slot == place and each.ref.op in moved for each in op.inputs)
        ):
            yield number, place


def _is_masked(ops: Sequence[FlatOp], number: int) -> bool:
    """Whether an op is a softmax with a mask in front of it; the offset of a layer is none."""
    if ops[number].type not in ("Softmax", "LogSoftmax") or not ops[number].inputs:
        return False
    before = ops[ops[number].inputs[0].ref.op]
    return before.type in MASKS and all(ops[each.ref.op].reads is None for each in before.inputs)


def _is_singular(op: FlatOp) -> bool:
    return is_own(op) and (op.type != "Pow" or not _is_whole(tf.get_static_value(op.op.inputs[1])))


def _is_whole(exponent: Any) -> bool:
    """Whether a power and its slope are finite everywhere."""
    return exponent is not None and bool(np.all((exponent >= 1) & (exponent == np.floor(exponent))))


def _is_merged(symbol: Any, taker: Any) -> bool:
    return symbol.op.type in _MERGED or may_be_merged_into(symbol, taker)


def _range(tensor: Any) -> Any:
    """float32 `[6]`, in the order of `RANGE_STATISTICS`."""
    flat = wide(tf.reshape(tensor, [-1]))
    finite = tf.math.is_finite(flat)
    smallest = tf.reduce_min(tf.where(finite, flat, tf.fill(tf.shape(flat), flat.dtype.max)))
    largest = tf.reduce_max(tf.where(finite, flat, tf.fill(tf.shape(flat), flat.dtype.min)))
    unknown = tf.constant(float("nan"))
    ends = [tf.where(tf.reduce_any(finite), tf.cast(end, tf.float32), unknown) for end in (smallest, largest)]
    return tf.concat([tf.zeros([2]), tf.stack(ends), tf.zeros([2])], 0)


def _beyond(limits: tuple[float, float], labels: Any) -> Any:
    """float32 `[6]`, in the order of `BEYOND_STATISTICS`."""
    some = sample(labels)
    variance = tf.maximum(tf.reduce_sum(tf.square(some - tf.reduce_mean(some))), _LEAST_VARIANCE)
    beyond = tf.nn.relu(limits[0] - some), tf.nn.relu(some - limits[1])
    parts = [tf.reduce_sum(tf.square(each)) / variance for each in beyond]
    return tf.concat([tf.zeros([2]), tf.cast(tf.stack(parts), tf.float32), tf.zeros([2])], 0)


def _magnitudes(tensor: Any) -> Any:
    return _range(tf.abs(tensor))
