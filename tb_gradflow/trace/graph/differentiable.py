"""Which inputs of an op propagate a gradient: determined by TensorFlow itself, not by a table.

The op's gradient function is called once with placeholder gradients inside a scratch graph; inputs for which it
returns None propagate nothing. Nothing is added to the user's graph, and nothing is run. A function of the user's is
not called for that where what it returns to TensorFlow is noted: see `noted_gradients`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import backprop_util, record
from tensorflow.python.framework import func_graph, ops

from tb_gradflow.record.schema import Passes
from tb_gradflow.trace.engine.definitions import CALLS
from tb_gradflow.trace.graph.noted_gradients import is_of_custom_gradient, returned_by
from tb_gradflow.trace.protection.foreign import faults
from tb_gradflow.trace.tf_internals.outside_tapes import untaped

Signature = tuple[object, ...]


class Differentiability:
    """Cached answers, keyed by everything about an op that the answer can depend on.

    Args:
        calls_users: Whether the user's own gradient functions are called too.
    """

    def __init__(self, *, calls_users: bool) -> None:
        self._calls_users = calls_users
        self._known: dict[tuple[bool, Signature], tuple[Passes, ...]] = {}

    def of(self, op: Any, *, by_tape: bool) -> tuple[Passes, ...]:
        """For each input of `op`, whether it propagates a gradient to it, for a tape or else for `tf.gradients`."""
        key = (by_tape, _signature(op))
        if key not in self._known:
            self._known[key] = _ask(op, by_tape, calls_users=self._calls_users)
        return self._known[key]


def is_differentiable_dtype(tensor: Any) -> bool:
    """Whether the tape tracks tensors of this type at all."""
    return bool(backprop_util.IsTrainable(tensor))


def shape_of(tensor: Any) -> tuple[int, ...] | None:
    """Sizes as in `record.schema.Tensor`."""
    if tensor.shape.rank is None:
        return _unless_one(tensor.op)
    # A list contains numbers whichever TensorFlow behaviour is switched on.
    return tuple(-1 if size is None else int(size) for size in tensor.shape.as_list())


def _unless_one(op: Any) -> tuple[int, ...] | None:
    """The sizes where TensorFlow does not know the rank, because `tf.squeeze` may find that the batch has one row: as
    they are if it has several."""
    if op.type == "Squeeze" and not op.get_attr("squeeze_dims"):
        before = shape_of(op.inputs[0])
        return None if before is None else tuple(size for size in before if size != 1)
    given = [shape_of(each) for each in op.inputs] if op.type in _ELEMENTWISE else []
    sizes = [each for each in given if each is not None]
    if not sizes or len(sizes) < len(given):
        return None
    rank = max(map(len, sizes))
    aligned = zip(*((1,) * (rank - len(each)) + each for each in sizes), strict=True)
    return tuple(next((size for size in axis if size not in (1, -1)), -1 if -1 in axis else 1) for axis in aligned)


_ELEMENTWISE = frozenset(
    {"Identity", "Cast", "Sub", "AddV2", "Mul", "SquaredDifference", "Square", "Abs", "Neg", "Log"}
)


def custom_gradient_name(op: Any) -> str | None:
    """Name of the gradient function that replaces the registered one; None for most ops."""
    try:
        name = op.get_attr("_gradient_op_type")
    except ValueError:
        return None
    return name.decode() if isinstance(name, bytes) else str(name)


def _signature(op: Any) -> Signature:
    attributes = tuple(
        sorted(
            (name, value.SerializeToString())
            for name, value in op.node_def.attr.items()
            if name not in ("_class", "_output_shapes", "value")
        )
    )
    tensors = tuple((tensor.dtype, tensor.shape.rank) for tensor in (*op.inputs, *op.outputs))
    return (op.type, attributes, tensors)


def is_overridden(op: Any) -> bool:
    """Whether `gradient_override_map` names another gradient for the op. A tape ignores that [seen with TensorFlow
    2.21]; `tf.gradients` uses it, and so does the gradient of a function's body, a loop or a branch.
    """
    return op.type != "IdentityN" and custom_gradient_name(op) is not None


def gradient_function_of(op: Any, *, by_tape: bool) -> Any:
    """The function that computes the op's gradient; None if it is registered as not differentiable. Raises LookupError
    if nothing is registered.
    """
    if by_tape and is_overridden(op):
        return ops.gradient_registry.lookup(op.type)
    return ops.get_gradient_function(op)


def _ask(op: Any, by_tape: bool, *, calls_users: bool) -> tuple[Passes, ...]:
    if not any(is_differentiable_dtype(tensor) for tensor in op.outputs):
        return _per_input(op, "none" if _has_gradient_function(op) else "not_differentiable")
    try:
        function = gradient_function_of(op, by_tape=by_tape)
    except LookupError:
        # If the function is called eagerly, a tape records the gradient of the whole function.
        return _per_input(op, "unknown" if by_tape and op.type in CALLS else "unregistered")
    if function is None:
        return _per_input(op, "not_differentiable")
    if is_of_custom_gradient(function) and not calls_users:
        return _noted(op, function)
    try:
        gradients = _call(function, op)
    # A gradient function is user code (`tf.custom_gradient` may contain anything), so its failure is an answer.
    except faults():
        return _per_input(op, "error")
    return tuple(_passes(tensor, gradient) for tensor, gradient in zip(op.inputs, gradients, strict=True))


def _noted(op: Any, function: Any) -> tuple[Passes, ...]:
    """What the user's function has returned; where TensorFlow has not called it, nothing depends on the answer."""
    returned = returned_by(function)
    if returned is None or not (returned.given or returned.has_raised):
        return _per_input(op, "yes")
    if returned.has_raised:
        return _per_input(op, "error")
    gradients = _padded([True if given else None for given in returned.given], op)
    return tuple(_passes(tensor, gradient) for tensor, gradient in zip(op.inputs, gradients, strict=True))


def _has_gradient_function(op: Any) -> bool:
    try:
        return ops.get_gradient_function(op) is not None
    except LookupError:
        return False


def _per_input(op: Any, answer: Passes) -> tuple[Passes, ...]:
    return tuple(answer if is_differentiable_dtype(tensor) else "dtype" for tensor in op.inputs)


def _passes(tensor: Any, gradient: Any) -> Passes:
    if not is_differentiable_dtype(tensor):
        return "dtype"
    return "none" if gradient is None else "yes"


def _call(function: Any, op: Any) -> Sequence[Any]:
    with op.graph.as_default():
        scratch = func_graph.FuncGraph("gradflow_probe")
    with scratch.as_default(), record.stop_recording():
        incoming = [_placeholder(tensor) for tensor in op.outputs]
        own = custom_gradient_name(op) is not None
        gradients = untaped(function, op, *incoming) if own else function(op, *incoming)
    listed = list(gradients) if isinstance(gradients, (list, tuple)) else [gradients]
    return _padded(listed, op)


def _padded(gradients: list[Any], op: Any) -> list[Any]:
    """A function that returns too few gradients gives none to the last inputs."""
    return gradients + [None] * (len(op.inputs) - len(gradients))


def _placeholder(tensor: Any) -> Any:
    if not is_differentiable_dtype(tensor):
        return None
    if tensor.dtype in (tf.resource, tf.variant):
        return tf.zeros_like(tensor) if tensor.dtype == tf.variant else None
    return tf.compat.v1.placeholder(tensor.dtype, tensor.shape)
