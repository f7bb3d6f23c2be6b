"""Gradients that cannot be measured without changing how the training rounds.

TensorFlow's graph optimizer merges neighbouring ops where nobody else looks at the value between them: two factors
become one, a scaled matrix product a fused kernel, a chain of sums one sum. Measuring that value keeps the ops apart,
and the merged and the separate ones round differently. The pairs below are those of its stages that reassociate or
fuse (constant push down, factor hoisting, sum rewriting, remapper); seen on attention and on GELU, where weights
differed by 1e-7 after some steps.

A sum of three or more is another case: its kernel begins with the first input whose memory it may reuse, so that
holding on to one of them changes the order in which it adds (`AddNOp` in aggregate_ops.cc).
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_FACTORS = frozenset({"Mul", "RealDiv", "Div", "Neg"})
_TERMS = frozenset({"AddV2", "Add", "Sub", "AddN"})
_PRODUCTS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})

# Ops whose output may be their input's memory.
_SAME_MEMORY = frozenset({"Identity", "Reshape", "Squeeze", "ExpandDims", "StopGradient", "Snapshot"})

# What is cheap enough to be done twice.
_REPEATED = _FACTORS | _TERMS | {"Sum", "Reshape", "Tile", "BroadcastTo", "Identity", "ExpandDims", "Squeeze"}

# How far to look ahead; a chain that is longer counts as merged.
_CHAIN = 10


def may_be_merged(gradient: Any) -> bool:
    """Whether measuring `gradient` may keep apart two ops that a plain step runs as one.

    Of several takers all but one may turn out to be of no use to anybody, and disappear: each is considered.
    """
    return any(_merges(gradient.op, taker) for taker in gradient.consumers()) or _is_summed(gradient)


def seen_apart(gradient: Any, depth: int = _CHAIN) -> Any:
    """The value of a gradient that may be merged, made once more by ops of its own from tensors that may be looked at.

    Null where that takes more than a few elementwise ops. The optimizer sees none of the repeated ops as the same:
    each stands behind an op that it does not look through.
    """
    made = gradient.op
    if depth == 0 or not isinstance(gradient, tf.Tensor) or made.type not in _REPEATED:
        return None
    inputs = [_seen_input(tensor, depth - 1) for tensor in made.inputs]
    if any(tensor is None for tensor in inputs):
        return None
    return made.graph.create_op(
        made.type, inputs, [tensor.dtype for tensor in made.outputs], attrs=dict(made.node_def.attr), name="seen_apart"
    ).outputs[gradient.value_index]


def apart(gradient: Any) -> Any:
    """A gradient, or where those who are still to take it may be merged with it, its value made once more."""
    if gradient.op.type not in _FACTORS | _TERMS:
        return gradient
    repeated = seen_apart(gradient)
    return gradient if repeated is None else repeated


def _seen_input(tensor: Any, depth: int) -> Any:
    if _is_constant(tensor.op):
        return tensor
    if may_be_merged(tensor):
        return seen_apart(tensor, depth)
    return tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=tensor.shape)


def recomputed(loss: Any, depth: int = _CHAIN) -> Any:
    """The value of a scalar loss, without looking at it where it may be merged with what the step makes of it (a
    metric's running total is a sum of sums). Its sums and products are done again by other ops, or the optimizer
    would notice that they are the same."""
    made = loss.op
    if depth == 0 or loss.shape.rank != 0 or made.type not in _FACTORS | _TERMS:
        return loss
    parts = [recomputed(tensor, depth - 1) for tensor in made.inputs]
    if any(part.shape.rank != 0 for part in parts):
        return loss
    if made.type in ("Sub", "Neg"):
        parts = [*parts[:-1], tf.reduce_prod(tf.stack([parts[-1], -tf.ones([], loss.dtype)]))]
    if made.type in ("RealDiv", "Div"):
        parts = [parts[0], tf.math.reciprocal(parts[1])]
    return tf.reduce_sum(tf.stack(parts)) if made.type in _TERMS | {"Neg"} else tf.reduce_prod(tf.stack(parts))


def _is_summed(tensor: Any) -> bool:
    """Whether the memory of a tensor is an input of a sum of three or more."""
    while tensor.op.type in _SAME_MEMORY:
        tensor = tensor.op.inputs[0]
    stack = [tensor]
    while stack:
        for taker in stack.pop().consumers():
            if taker.type == "AddN" and len(taker.inputs) > 2:
                return True
            if taker.type in _SAME_MEMORY:
                stack.append(taker.outputs[0])
    return False


def _merges(made: Any, taker: Any) -> bool:
    if made.type in _PRODUCTS:
        # Only batched products are fused with a scale.
        return taker.type in _TERMS or (taker.type in _FACTORS and made.type != "MatMul")
    if made.type in _TERMS:
        return taker.type in _TERMS or _has_constant(taker)
    if made.type in _FACTORS:
        return taker.type == "AddN" or _meets_constant(taker)
    return False


def _meets_constant(op: Any) -> bool:
    """Whether a chain of factors that begins with `op` has a constant one, which may be pushed down all of it. Where
    it branches, each branch may be the one that is left: a division by a constant has a gradient of the constant."""
    takers = {op.name: op}
    for _ in range(_CHAIN):
        factors = [taker for taker in takers.values() if taker.type in _FACTORS]
        if any(_has_constant(factor) for factor in factors):
            return True
        takers = {taker.name: taker for factor in factors for taker in factor.outputs[0].consumers()}
    return False


def _has_constant(op: Any) -> bool:
    return op.type in _FACTORS | _TERMS and (op.type == "Neg" or any(_is_constant(tensor.op) for tensor in op.inputs))


def _is_constant(op: Any) -> bool:
    """Whether an op's value is known before anything runs: made of constants and static shapes alone."""
    stack, seen = [op], set()
    while stack:
        each = stack.pop()
        if each.name in seen:
            continue
        seen.add(each.name)
        if each.type in ("Placeholder", "ReadVariableOp") or len(seen) > 20:
            return False
        if each.type not in ("Shape", "Size"):
            stack.extend(tensor.op for tensor in each.inputs)
    return True
