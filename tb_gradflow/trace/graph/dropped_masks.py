"""Keras masks that are dropped: in a layer that does not propagate them, or in a function that is not a layer.
Everything after that treats padding as data."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

import tensorflow as tf

from tb_gradflow.record.schema import HowLost
from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.source.frames import PACKAGE


@dataclass(slots=True)
class Dropped:
    """One place where a mask is, or may be, dropped.

    Attributes:
        layer: Name of the layer; for a tensor that goes into no layer, that of the layer that returned it.
        type: Its class.
        by: The layer itself.
        scope: Its name scope, once it has entered it; empty before, and if the tensor goes into no layer.
        given: The tensor that the mask belongs to.
        mask: bool, true for unmasked steps.
        how: Whether a layer drops the mask; or propagates it, but computes unmasked steps from padding too; or the
            tensor goes into no layer.
    """

    layer: str
    type: str
    by: Any
    scope: str
    given: Any
    mask: Any
    how: HowLost = "dropped"


def dropped_by(layer: Any, given: Any) -> Dropped | None:
    """The mask that a Keras 3 layer drops when it is called with `given`; `None` if it gets no mask, uses it or
    propagates it."""
    mask = _mask_of(given)
    if mask is None:
        return None
    if _mixes_steps(layer):
        return Dropped(str(layer.name), type(layer).__name__, layer, "", given, mask, "mixed")
    if layer.supports_masking and not _forgets(layer):
        return None
    if not _forgets(layer) and "mask" in inspect.signature(layer.call).parameters:
        return None
    return Dropped(str(layer.name), type(layer).__name__, layer, "", given, mask)


# Between a layer and its caller.
_CALLING = ("/keras/src/layers/layer.py", "/keras/src/ops/operation.py", "/keras/src/utils/traceback_utils.py")


def made_with_mask(layer: Any, outputs: Any) -> Iterator[Dropped]:
    """The tensors that a layer returns with a mask, unless it is a part of one of Keras's own layers, such as a
    Bidirectional. If they go into no layer, nothing propagates the mask.
    """
    if _is_called_by_layer_of_keras():
        return
    for tensor in tf.nest.flatten(outputs):
        mask = _mask_of(tensor)
        # A mask of rows, as of categories, leaves out no steps.
        if mask is not None and mask.shape.rank is not None and mask.shape.rank > 1:
            yield Dropped(str(layer.name), type(layer).__name__, layer, "", tensor, mask, "unused")


def _is_called_by_layer_of_keras() -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename.replace("\\", "/")
        if not file.endswith(_CALLING) and not file.startswith(PACKAGE):
            return "/keras/src/layers/" in file
        frame = frame.f_back
    return False


def _mask_of(tensor: Any) -> Any:
    mask = getattr(tensor, "_keras_mask", None)
    return mask if isinstance(tensor, tf.Tensor) and tensor.dtype.is_floating else None


def _mixes_steps(layer: Any) -> bool:
    """Whether it propagates a mask, but computes a mean over steps without using it."""
    import keras

    if isinstance(layer, keras.layers.GroupNormalization):
        return True
    axis = getattr(layer, "axis", None)
    over = axis if isinstance(axis, (list, tuple)) else [axis]
    return isinstance(layer, (keras.layers.LayerNormalization, keras.layers.UnitNormalization)) and 1 in over


def _forgets(layer: Any) -> bool:
    """Whether it is a `Lambda` whose function has no mask argument: Keras assumes that it handles masks."""
    import keras

    if not isinstance(layer, keras.layers.Lambda) or layer.mask is not None:
        return False
    try:
        return "mask" not in inspect.signature(layer.function).parameters
    except (TypeError, ValueError):
        return False


def at_padding(dropped: Dropped, gradients: Mapping[Ref, Any], ref: Ref | None, name_of: Callable[[int], str]) -> Any:
    """The gradient at the masked steps, zero elsewhere, of the last value that the layer computes with the same steps;
    if there is none, of its input. `None` if there is neither. The input of a convolution is no
    evidence: its window also covers unmasked steps next to padding.

    Args:
        dropped: The call.
        gradients: The gradient by tensor on the path.
        ref: The input of the layer.
        name_of: The name by flat op.
    """
    given, mask = gradients.get(ref) if ref is not None else None, dropped.mask
    if dropped.how == "mixed":
        if not _fits(given, mask) or not _fits(dropped.given, mask):
            return None
        # Zeros that replace padding contain nothing of it.
        empty = tf.equal(dropped.given, tf.zeros_like(dropped.given))
        return tf.where(_beside(mask, given) | empty, tf.zeros_like(given), given)
    inside = f"{dropped.scope}/"
    of_layer = [each for each in gradients if dropped.scope and name_of(each.op).startswith(inside)]
    fitting = [each for each in sorted(of_layer, key=lambda each: each.op) if _fits(gradients[each], mask)]
    found = gradients[fitting[-1]] if fitting else given
    if not _fits(found, mask):
        return None
    if not fitting and mask.shape.rank > 1:
        # In a recurrent layer, the last step contains the state after the last unmasked step, even if it is padding:
        # `x[:, -1]` is right.
        mask = tf.concat([mask[..., :-1], tf.ones_like(mask[..., -1:])], -1)
    return tf.where(_beside(mask, found), tf.zeros_like(found), found)


def _beside(mask: Any, tensor: Any) -> Any:
    """A mask with as many axes as a tensor has."""
    for _ in range(tensor.shape.rank - mask.shape.rank):
        mask = mask[..., tf.newaxis]
    return mask


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
