"""Hooks of Keras 3 and Keras 2 (tf_keras) that show when a loss is scaled, an update is made and a layer begins."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.capture.observers import Here
from tb_gradflow.trace.protection.beside import Followed
from tb_gradflow.trace.protection.functions import hearer_of_faults
from tb_gradflow.trace.tf_internals.patching import replaced

_ARGUMENTS = ("grads_and_vars", "grads", "trainable_variables")


def patch_keras(undo: contextlib.ExitStack, here: Here) -> None:
    """Patches whichever of the two is loaded, and the optimizers of TensorFlow 1, until `undo` is closed."""
    replaced(
        undo, tf.compat.v1.train.Optimizer, "apply_gradients", lambda original: _applying(original, here), given=_listed
    )
    if "keras" in sys.modules:
        _patch_three(undo, here)
    if "tf_keras" in sys.modules:
        _patch_two(undo, here)


def _patch_three(undo: contextlib.ExitStack, here: Here) -> None:
    import keras

    base = next(c for c in keras.optimizers.Optimizer.__mro__ if "apply" in vars(c) and "scale_loss" in vars(c))
    for owner in (base, keras.optimizers.LossScaleOptimizer):
        replaced(undo, owner, "scale_loss", lambda original: _scaling(original, here))
        replaced(undo, owner, "apply", lambda original: _applying(original, here, _divides), given=_listed)
    updating = next(c for c in keras.optimizers.Optimizer.__mro__ if "_backend_update_step" in vars(c))
    replaced(undo, updating, "_backend_update_step", lambda original: _updating(original, here))
    replaced(undo, keras.layers.Layer, "_open_name_scope", lambda original: _name_scope(original, here))
    # The first function that a layer calls with its input, before it takes the mask for its own `call`.
    replaced(undo, keras.layers.Layer, "_assert_input_compatibility", lambda original: _given(original, here))
    # The last function that a layer calls if it creates or propagates a mask.
    replaced(undo, keras.layers.Layer, "_set_mask_metadata", lambda original: _returned(original, here))


def _patch_two(undo: contextlib.ExitStack, here: Here) -> None:
    import tf_keras

    for optimizer in (tf_keras.optimizers.Optimizer, tf_keras.optimizers.legacy.Optimizer):
        for owner in optimizer.__mro__:
            replaced(undo, owner, "apply_gradients", lambda original: _applying(original, here), given=_listed)
    loss_scale = sys.modules[tf_keras.mixed_precision.LossScaleOptimizer.__module__]
    for name in ("LossScaleOptimizer", "LossScaleOptimizerV3"):
        if hasattr(loss_scale, name):
            replaced(undo, getattr(loss_scale, name), "get_scaled_loss", lambda original: _scaling(original, here))
            replaced(
                undo,
                getattr(loss_scale, name),
                "apply_gradients",
                lambda original: _applying(original, here),
                given=_listed,
            )
    # The first function that a layer calls inside its name scope, eagerly or not.
    replaced(undo, tf_keras.layers.Layer, "_maybe_cast_inputs", lambda original: _entering(original, here))


def _scaling(original: Callable[..., Any], here: Here) -> Callable[..., Any]:
    @functools.wraps(original)
    def scale_loss(self: Any, loss: Any) -> Any:
        result = original(self, loss)
        look = here()
        if look is not None and isinstance(result, tf.Tensor):
            look.listener.scaled(loss, result)
        return result

    return scale_loss


def _divides(optimizer: Any) -> bool:
    """Whether a Keras 3 optimizer divides gradients by the scale by which its `scale_loss` multiplies the loss. Keras 2
    itself warns if `scale_loss` was forgotten.
    """
    import keras

    return type(optimizer) is keras.optimizers.LossScaleOptimizer or bool(getattr(optimizer, "loss_scale_factor", None))


def _applying(
    original: Callable[..., Any], here: Here, divides: Callable[[Any], bool] = lambda optimizer: False
) -> Callable[..., Any]:
    @functools.wraps(original)
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        look = here()
        if look is None:
            return original(self, *args, **kwargs)
        given = args or tuple(kwargs[name] for name in _ARGUMENTS if name in kwargs)
        return look.listener.applying(lambda: original(self, *args, **kwargs), self, given, divides=divides(self))

    return apply


def _updating(original: Callable[..., Any], here: Here) -> Callable[..., Any]:
    @functools.wraps(original)
    def backend_update_step(self: Any, grads: Any, trainable_variables: Any, learning_rate: Any) -> Any:
        look = here()
        if look is not None:
            look.listener.rated(self, learning_rate)
        return original(self, grads, trainable_variables, learning_rate)

    return backend_update_step


def _listed(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of an optimizer; pairs that can be iterated only once become a list."""
    if len(args) > 1 and isinstance(args[1], Iterator):
        return (args[0], list(args[1]), *args[2:])
    return args


def _name_scope(original: Callable[..., Any], here: Here) -> Callable[..., Any]:
    failed = hearer_of_faults()

    @functools.wraps(original)
    def open_name_scope(self: Any) -> Any:
        def entered() -> None:
            look = here()
            if look is not None:
                look.listener.entered(self, tf.get_current_name_scope())

        return Followed(original(self), entered, failed)

    return open_name_scope


def _given(original: Callable[..., Any], here: Here) -> Callable[..., Any]:
    @functools.wraps(original)
    def assert_input_compatibility(self: Any, given: Any) -> Any:
        look = here()
        if look is not None:
            look.listener.given(self, given)
        return original(self, given)

    return assert_input_compatibility


def _returned(original: Callable[..., Any], here: Here) -> Callable[..., Any]:
    @functools.wraps(original)
    def set_mask_metadata(self: Any, inputs: Any, outputs: Any, *args: Any) -> Any:
        result = original(self, inputs, outputs, *args)
        look = here()
        if look is not None:
            look.listener.returned(self, outputs)
        return result

    return set_mask_metadata


def _entering(original: Callable[..., Any], here: Here) -> Callable[..., Any]:
    @functools.wraps(original)
    def maybe_cast_inputs(self: Any, *args: Any, **kwargs: Any) -> Any:
        look = here()
        if look is not None:
            look.listener.entered(self, tf.get_current_name_scope())
        return original(self, *args, **kwargs)

    return maybe_cast_inputs
