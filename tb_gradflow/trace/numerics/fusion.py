"""Gradients that cannot be measured without changing how the training rounds.

TensorFlow's graph optimizer merges neighbouring ops if nothing else reads the value between them: two factors become
one, a scaled matrix product becomes a fused kernel, a chain of sums becomes one sum. Measuring that value keeps the ops
separate, and merged ops round differently. The pairs below are those of the optimizer stages that reassociate or fuse
(constant push down, factor hoisting, sum rewriting, remapper). The effect was seen on attention and on GELU, where
weights differed by 1e-7 after some steps. Products of several factors with different shapes are multiplied in a
different order (minimize broadcasts): for example the scale of a normalisation, whose gradient SGD multiplies by a
number. The optimizer also sees through sums over no axes, which follow each product whose sizes are not known while a
step is traced.

A power with a constant exponent becomes another op: with exponent 1, as in the gradient of `x ** 2`, its input itself.

A sum of three or more terms is another case: its kernel starts with the first input whose memory it may reuse, so
keeping one of them alive changes the order in which it adds (`AddNOp` in aggregate_ops.cc).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from tb_gradflow.analyse.graph.op_sets import SUMS
from tb_gradflow.trace.engine.definitions import CALLS
from tb_gradflow.trace.engine.reached import reached

_FACTORS = frozenset({"Mul", "RealDiv", "Div", "Neg"})
_PRODUCTS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})

# Ops whose output may reuse their input's memory.
_SAME_MEMORY = frozenset({"Identity", "Reshape", "Squeeze", "ExpandDims", "StopGradient", "Snapshot"})

COPIES = frozenset({"Identity", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics"})

# Ops that are cheap enough to run twice.
_REPEATED = _FACTORS | SUMS | {"Sum", "Reshape", "Tile", "BroadcastTo", "Identity", "ExpandDims", "Squeeze"}

# By the graph with the second call, then by name of the first: the second.
_CALLED_APART: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()

# By the graph that has them, then by the graph and the name of the first: tensors with the same values.
_SEEN_APART: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
_BEHIND: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()

# The size in bytes up to which constants are folded (kMaxConstantSize).
_FOLDED = 100 * 1024

# How far to look ahead; a longer chain counts as merged.
_CHAIN = 10


class Needed:
    """The ops that still exist when a step runs: of those that were created for a gradient, the ones that lead to a
    requested gradient. A division by a constant also creates a gradient of the constant, which is pruned.

    Args:
        asked: The requested gradients.
        on_the_way: Other gradients that were taken together with them.
    """

    def __init__(self, asked: Sequence[Any], on_the_way: Sequence[Any]) -> None:
        self._asked = [each.op for each in asked if _is_symbolic(each)]
        made = [*self._asked, *(each.op for each in on_the_way if _is_symbolic(each))]
        self._graph = made[0].graph if made else None
        self._first = min((op._id for op in made if op.graph is self._graph), default=0)

    def __contains__(self, op: Any) -> bool:
        return not self.is_made(op) or op.name in self._names

    def is_made(self, op: Any) -> bool:
        """Whether taking the gradient created the op."""
        return op.graph is self._graph and op._id >= self._first

    @cached_property
    def _names(self) -> set[str]:
        made = reached(
            filter(self.is_made, self._asked), lambda op: filter(self.is_made, (tensor.op for tensor in op.inputs))
        )
        return {op.name for op in made}


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, tf.Tensor) and tf.is_symbolic_tensor(value)


def may_be_merged(gradient: Any, needed: Needed | None = None) -> bool:
    """Whether measuring `gradient` may keep two ops separate that a plain step runs as one.

    Of several consumers all but one may turn out to be unused and be pruned, so each is considered. A constant may be
    pushed into its consumer.
    """
    if gradient.op.type == "Const":
        return True
    made = _maker(gradient.op)
    return any(_merges(made, taker, needed) for taker in _takers(gradient)) or _is_summed(gradient)


def may_be_merged_into(tensor: Any, taker: Any) -> bool:
    """The same for a tensor of the forward pass that `taker` needs: as long as `taker` reads it, the optimizer does not
    merge it into any of its other consumers."""
    return tensor.op.type == "Const" or _merges(_maker(tensor.op), taker, None) or _is_summed(tensor)


def seen_apart(gradient: Any, needed: Needed | None = None, depth: int = _CHAIN) -> Any:
    """The value of a gradient that may be merged, computed again by separate ops from tensors that can be measured
    safely. Each tensor is computed again once.

    None if that takes more than a few elementwise ops, or a second sum over broadcast axes: the optimizer would no
    longer see through the first one. It does not recognise the repeated ops as equal, because each follows an op that
    it does not look through.
    """
    graph = tf.compat.v1.get_default_graph()
    names = _SEEN_APART.setdefault(graph, {})
    if not isinstance(gradient, tf.Tensor):
        return None
    key = f"{id(gradient.graph)} {gradient.name}"
    if key not in names:
        found = _computed_again(gradient, needed, depth)
        if found is None:
            return None
        names[key] = found.name
    return graph.get_tensor_by_name(names[key])


def _computed_again(gradient: Any, needed: Needed | None, depth: int) -> Any:
    made = gradient.op
    if made.type == "Const" and gradient.dtype.is_floating:
        return behind(gradient)
    repeats = made.type in _REPEATED or _is_rewritten(made)
    if depth == 0 or not repeats or is_of_broadcast(made):
        return None
    inputs = [_seen_input(tensor, needed, depth - 1) for tensor in made.inputs]
    if any(tensor is None for tensor in inputs):
        return None
    if all(is_constant(tensor.op) for tensor in inputs):
        inputs = [behind(inputs[0]), *inputs[1:]]
    return _again(made, inputs, "seen_apart").outputs[gradient.value_index]


def apart(gradient: Any) -> Any:
    """A gradient; or, if its later consumers (an optimizer) may be merged with it, its value computed again. None stays
    None.
    """
    if gradient is not None and gradient.op.type == "PartitionedCall":
        return gradient if computed_apart([gradient]) else _called_apart(gradient)
    if gradient is None:
        return gradient
    value = gradient
    while value.op.type in COPIES:  # as behind a clip by the norm of all gradients
        value = value.op.inputs[0]
    if value.op.type not in _FACTORS | SUMS:
        return gradient
    repeated = seen_apart(value)
    return gradient if repeated is None else repeated


def _called_apart(gradient: Any) -> Any:
    """A result of a call, from a second call that nothing else uses."""
    call, graph = gradient.op, tf.compat.v1.get_default_graph()
    names = _CALLED_APART.setdefault(graph, {})
    if call.name not in names:
        if graph is not call.graph:
            graph._add_function_recursive(call.graph._get_function(call.get_attr("f").name))
        names[call.name] = _again(call, [behind(each) for each in call.inputs], "called_apart").name
    return graph.get_operation_by_name(names[call.name]).outputs[gradient.value_index]


def _again(op: Any, inputs: Sequence[Any], name: str) -> Any:
    """A second op that does what an op does, in the graph that is open."""
    return tf.compat.v1.get_default_graph().create_op(
        op.type, inputs, [each.dtype for each in op.outputs], attrs=dict(op.node_def.attr), name=name
    )


def computed_apart(gradients: Sequence[Any]) -> list[Any]:
    """The gradients without those that a called function computes as a product or a sum. The optimizer puts the
    function's ops in the place of the call and may merge them with later ones, and here they cannot be repeated."""
    calls: dict[int, list[str]] = {}
    for each in gradients:
        if each.op.type in CALLS and id(each.op) not in calls:
            calls[id(each.op)] = _types_of_results(each.op)
    merged = _FACTORS | SUMS
    return [
        each for each in gradients if id(each.op) not in calls or calls[id(each.op)][each.value_index] not in merged
    ]


def _types_of_results(call: Any) -> list[str]:
    """The types of the ops that compute the outputs of a call; that of a call inside it for what this computes."""
    definition = call.graph._get_function(call.get_attr("f").name).cached_definition
    nodes = {node.name: node for node in definition.node_def}

    def made(source: str) -> str:
        node = nodes.get(source.split(":")[0])
        while node is not None and node.op in _SAME_MEMORY:
            node = nodes.get(node.input[0].split(":")[0])
        return "" if node is None else str(node.op)

    return [made(definition.ret[output.name]) for output in definition.signature.output_arg]


def _seen_input(tensor: Any, needed: Needed | None, depth: int) -> Any:
    if is_constant(tensor.op):
        return tensor if _is_folded(tensor) else seen_apart(tensor, needed, depth)
    # A tensor of the forward pass that the backward pass uses again has two consumers, and is merged with neither.
    is_taken_again = needed is not None and not needed.is_made(tensor.op) and len(tensor.consumers()) > 1
    if not is_taken_again and may_be_merged(tensor, needed):
        return seen_apart(tensor, needed, depth)
    return behind(tensor)


def _is_folded(constant: Any) -> bool:
    """Whether the optimizer puts its value in the place of a constant. The ops of a larger one remain, and are merged
    with their consumers as those of any other value."""
    size = constant.shape.num_elements()
    return constant.op.type == "Const" or (size is not None and size * constant.dtype.size <= _FOLDED)


def behind(tensor: Any) -> Any:
    """The same value from an op that the optimizer does not look through."""
    graph = tf.compat.v1.get_default_graph()
    names = _BEHIND.setdefault(graph, {})
    key = f"{id(tensor.graph)} {tensor.name}"
    if key not in names:
        names[key] = _placeholder_for(tensor).name
    return graph.get_tensor_by_name(names[key])


def _placeholder_for(tensor: Any) -> Any:
    if tensor.op.type == "Const" and tensor.dtype.is_floating:
        # Not of the constant itself, nor of an equal one: they would be deduplicated.
        value = tf.constant(np.asarray(tf.get_static_value(tensor), np.float64))
        return tf.cast(tf.raw_ops.PlaceholderWithDefault(input=value, shape=value.shape), tensor.dtype)
    return tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=tensor.shape)


def recomputed(loss: Any, depth: int = _CHAIN) -> Any:
    """The value of a scalar loss, without reading it directly if it may be merged with its consumers (a metric's
    running total is a sum of sums). Its sums and products are repeated by different ops, since the optimizer would
    deduplicate equal ones.
    """
    made = loss.op
    if depth == 0 or loss.shape.rank != 0 or made.type not in _FACTORS | SUMS:
        return loss
    parts = [recomputed(tensor, depth - 1) for tensor in made.inputs]
    if any(part.shape.rank != 0 for part in parts):
        return loss
    if made.type in ("Sub", "Neg"):
        parts = [*parts[:-1], tf.reduce_prod(tf.stack([parts[-1], -tf.ones([], loss.dtype)]))]
    if made.type in ("RealDiv", "Div"):
        parts = [parts[0], tf.math.reciprocal(parts[1])]
    return tf.reduce_sum(tf.stack(parts)) if made.type in SUMS | {"Neg"} else tf.reduce_prod(tf.stack(parts))


def _is_summed(tensor: Any) -> bool:
    """Whether the memory of a tensor is an input of a sum of three or more terms."""
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


def _merges(made: Any, taker: Any, needed: Needed | None) -> bool:
    if made.type in _PRODUCTS:
        # Only batched products are fused with a scale.
        return taker.type in SUMS or (taker.type in _FACTORS and made.type != "MatMul")
    if made.type in SUMS:
        return taker.type in SUMS or _has_constant(taker)
    if _is_rewritten(made):
        return taker.type in _FACTORS | SUMS
    if made.type in _FACTORS:
        return taker.type == "AddN" or _meets_constant(taker, needed) or _is_reordered(made, taker, needed)
    return False


def _is_rewritten(op: Any) -> bool:
    """Whether the optimizer puts a cheaper op in the place of a power (ConvertPow): the input itself, a product, a
    root, a reciprocal."""
    return bool(op.type == "Pow" and is_constant(op.inputs[1].op))


def _is_reordered(made: Any, taker: Any, needed: Needed | None) -> bool:
    """Whether `made` and `taker` belong to one product whose factors have different shapes."""
    if not _is_product(made) or not _is_product(taker):
        return False
    for _ in range(_CHAIN):
        takers = _needed_takers(taker, needed)
        if len(takers) != 1 or not _is_product(takers[0]):
            break
        [taker] = takers
    stack, shapes = [taker], set[str]()
    while stack and len(shapes) < 2:
        for factor in stack.pop().inputs:
            maker = _maker(factor.op)
            if maker is made or (_is_product(maker) and len(_needed_takers(maker, needed)) == 1):
                stack.append(maker)
            else:
                shapes.add(str(factor.shape))
    return len(shapes) > 1


def _is_product(op: Any) -> bool:
    """A division by a constant becomes a multiplication."""
    return op.type == "Mul" or (op.type in ("RealDiv", "Div") and is_constant(op.inputs[1].op))


def _meets_constant(op: Any, needed: Needed | None) -> bool:
    """Whether a chain of factors that begins with `op` has a constant factor, which may be pushed along all of it."""
    for _ in range(_CHAIN):
        if op.type not in _FACTORS:
            return False
        if _has_constant(op):
            return True
        takers = _needed_takers(op, needed)
        if len(takers) != 1:
            return False
        [op] = takers
    return True


def _maker(op: Any) -> Any:
    """The op that really computes the value of an op; a gradient may have passed through a sum over no axes."""
    while _is_seen_through(op):
        op = op.inputs[0].op
    return op


def _takers(tensor: Any) -> list[Any]:
    """The ops that really consume a tensor."""
    found, queue = [], list(tensor.consumers())
    for op in queue:  # grows during the loop
        if _is_seen_through(op):
            queue.extend(op.outputs[0].consumers())
        else:
            found.append(op)
    return found


def _needed_takers(op: Any, needed: Needed | None) -> list[Any]:
    return [taker for taker in _takers(op.outputs[0]) if needed is None or taker in needed]


def _is_seen_through(op: Any) -> bool:
    """Whether the optimizer may remove an op that changes nothing. In a graph of TensorFlow 1 this includes the copies
    with which `tf.gradients` keeps all gradients of an op together.
    """
    return is_of_broadcast(op) or (op.type in COPIES and not op.graph.building_function)


def elements_of(gradient: Any) -> Any:
    """The numbers of a gradient that TensorFlow squares and adds up: of `IndexedSlices`, one row may be there twice."""
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def is_of_broadcast(op: Any) -> bool:
    """Whether an op sums over the axes along which a factor or term was broadcast, or computes the shape of that sum.
    If sizes are unknown while a step is traced, as for the last batch, every gradient of a product has these two; the
    optimizer removes them if nothing was broadcast.
    """
    if op.type == "Reshape":
        op = op.inputs[0].op
    return bool(op.type == "Sum" and op.inputs[1].op.type == "BroadcastGradientArgs")


def _has_constant(op: Any) -> bool:
    return op.type in _FACTORS | SUMS and (op.type == "Neg" or any(is_constant(tensor.op) for tensor in op.inputs))


def is_constant(op: Any, most: int = 20) -> bool:
    """Whether an op's value is known before anything runs: computed only from constants and static shapes, by as many
    ops at most."""
    stack, seen = [op], set()
    while stack:
        each = stack.pop()
        if each.name in seen:
            continue
        seen.add(each.name)
        # Random numbers, values of variables and of Python; and what the step is given.
        if each.op_def.is_stateful or (each.type != "Const" and not each.inputs) or len(seen) > most:
            return False
        if each.type not in ("Shape", "Size"):
            stack.extend(tensor.op for tensor in each.inputs)
    return True
