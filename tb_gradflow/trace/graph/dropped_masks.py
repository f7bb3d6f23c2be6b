"""Layers that get a Keras mask and do not propagate it: the layers after them treat padding as data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.numerics.statistics import gradient_statistics


@dataclass(slots=True)
class Dropped:
    """One call of such a layer.

    Attributes:
        layer: Its name.
        type: Its class.
        by: The layer itself.
        scope: Its name scope, once it has entered it; empty before.
        given: The tensor that the mask belongs to.
        mask: bool, true where a step counts.
    """

    layer: str
    type: str
    by: Any
    scope: str
    given: Any
    mask: Any


def dropped_by(layer: Any, given: Any) -> Dropped | None:
    """The mask that a layer of Keras 3 drops when called with `given`; `None` if it gets no mask, uses it or propagates
    it.
    """
    mask = getattr(given, "_keras_mask", None)
    if mask is None or not isinstance(given, tf.Tensor) or not given.dtype.is_floating:
        return None
    if layer.supports_masking and not _forgets(layer):
        return None
    if not _forgets(layer) and "mask" in inspect.signature(layer.call).parameters:
        return None
    return Dropped(str(layer.name), type(layer).__name__, layer, "", given, mask)


def _forgets(layer: Any) -> bool:
    """Whether it is a `Lambda` whose function takes no mask: Keras assumes that it handles masks."""
    import keras

    if not isinstance(layer, keras.layers.Lambda) or layer.mask is not None:
        return False
    try:
        return "mask" not in inspect.signature(layer.function).parameters
    except (TypeError, ValueError):
        return False


def at_padding(dropped: Dropped, gradients: Mapping[Ref, Any], ref: Ref | None, name_of: Callable[[int], str]) -> Any:
    """float32 `[6]`: statistics of the gradient at the steps that the mask leaves out, of the last value with the same
    steps that the layer computes; if there is none, of its input. `None` if there is neither.

    The input of a convolution is no evidence: next to padding, an unmasked step is within its reach.

    Args:
        dropped: The call.
        gradients: The gradient by tensor on the path.
        ref: The input of the layer.
        name_of: The name by flat op.
    """
    inside = f"{dropped.scope}/"
    of_layer = [each for each in gradients if dropped.scope and name_of(each.op).startswith(inside)]
    fitting = [each for each in sorted(of_layer, key=lambda each: each.op) if _fits(gradients[each], dropped.mask)]
    found = gradients[fitting[-1]] if fitting else gradients.get(ref) if ref is not None else None
    if found is None or not _fits(found, dropped.mask):
        return None
    mask = dropped.mask
    for _ in range(found.shape.rank - mask.shape.rank):
        mask = mask[..., tf.newaxis]
    return gradient_statistics(tf.where(mask, tf.zeros_like(found), found))


def _fits(gradient: Any, mask: Any) -> bool:
    """Whether a gradient has the mask's steps, and both are in one graph."""
    if not isinstance(gradient, tf.Tensor) or not isinstance(mask, tf.Tensor):
        return False
    if getattr(gradient, "graph", None) is not getattr(mask, "graph", None):
        return False
    rank = mask.shape.rank
    if rank is None or gradient.shape.rank is None or gradient.shape.rank <= rank:
        return False
    return all(a == b for a, b in zip(gradient.shape[1:rank], mask.shape[1:], strict=True))
