"""Whether gradients are finite, at a small part of the cost of checking each element.

A kernel has as many elements as all the rest together, and a non-finite gradient seldom stays in one place: the
incoming gradient of a kernel also reaches its bias, and the scale of a normalisation before it. So small gradients are
checked, and large ones only where no small gradient gives the same information.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.analyse.graph.op_sets import SAME_ELEMENTS
from tb_gradflow.trace.numerics.fusion import apart, computed_apart, elements_of

SMALL = 4096
"""Number of elements that are summed in less time than an op takes to start (some microseconds on a CPU)."""

# Each element of the result is a sum of products of activations with the incoming gradient: if both are finite (the
# loss shows it for the activations), only an overflow of the sum itself is missed.
_CONTRACTIONS = frozenset(
    {
        "MatMul",
        "BatchMatMulV2",
        "BatchMatMulV3",
        "Einsum",
        "Conv2DBackpropFilter",
        "Conv3DBackpropFilterV2",
        "DepthwiseConv2dNativeBackpropFilter",
    }
)


def half_squares(gradients: Sequence[Any]) -> Any:
    """float32 scalar: half the sum of the squares of the elements of the gradients that are looked at. It is not finite
    if one of the gradients is known not to be finite, or if the sum overflows."""
    halves = [tf.nn.l2_loss(tf.cast(each, tf.float32)) for each in _looked_at(gradients)]
    return tf.add_n(halves) if halves else tf.zeros([])


def _looked_at(gradients: Sequence[Any]) -> list[Any]:
    flat = [elements_of(each) for each in gradients if each is not None]
    flat = [each for each in flat if each.dtype.is_floating or each.dtype.is_complex]
    flat = computed_apart(flat)
    small = [each for each in flat if _is_small(each)]
    covered = {tensor.ref() for each in small for tensor in _arriving(each)}
    large = [each for each in flat if not _is_small(each) and not _is_covered(each, covered)]
    return [tf.abs(each) if each.dtype.is_complex else each for each in (*map(apart, small), *large)]


def _is_small(tensor: Any) -> bool:
    count = tensor.shape.num_elements()
    return count is not None and count <= SMALL


def _is_covered(gradient: Any, covered: set[Any]) -> bool:
    made = _maker(gradient)
    return made.type in _CONTRACTIONS and any(tensor.ref() in covered for tensor in _same(made.inputs))


def _arriving(gradient: Any) -> Iterator[Any]:
    """The tensors whose non-finite elements must also appear in a small gradient that is computed from them."""
    made = _maker(gradient)
    yield from _same(made.inputs)
    yield from made.outputs


def _same(tensors: Sequence[Any]) -> Iterator[Any]:
    """The tensors, and the tensors from which they have all their elements."""
    for tensor in tensors:
        yield tensor
        while tensor.op.type in SAME_ELEMENTS:
            tensor = tensor.op.inputs[0]
            yield tensor


def _maker(tensor: Any) -> Any:
    """The op that computed the elements of a tensor."""
    while tensor.op.type in SAME_ELEMENTS:
        tensor = tensor.op.inputs[0]
    return tensor.op
