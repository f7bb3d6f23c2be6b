"""Hooks of Keras 3 and Keras 2 (tf_keras) that show when a loss is scaled, an update is made and a layer begins."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.capture.collector import Collector
from tb_gradflow.trace.capture.observers import Here
from tb_gradflow.trace.protection.beside import Followed
from tb_gradflow.trace.protection.functions import hearer_of_faults
from tb_gradflow.trace.tf_internals.patching import replaced

_Notify = Callable[..., None]
_Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]

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
        replaced(undo, owner, "scale_loss", _notified(here, after=_scaled))
        replaced(undo, owner, "apply", lambda original: _applying(original, here, _divides), given=_listed)
    updating = next(c for c in keras.optimizers.Optimizer.__mro__ if "_backend_update_step" in vars(c))
    replaced(undo, updating, "_backend_update_step", _notified(here, before=_rated))
    replaced(undo, keras.layers.Layer, "_open_name_scope", lambda original: _name_scope(original, here))
    # The first function that a layer calls with its input, before it takes the mask for its own `call`.
    replaced(undo, keras.layers.Layer, "_assert_input_compatibility", _notified(here, before=Collector.given))
    # The last function that a layer calls if it creates or propagates a mask.
    replaced(undo, keras.layers.Layer, "_set_mask_metadata", _notified(here, after=_returned))


def _patch_two(undo: contextlib.ExitStack, here: Here) -> None:
    import tf_keras

    for optimizer in (tf_keras.optimizers.Optimizer, tf_keras.optimizers.legacy.Optimizer):
        for owner in optimizer.__mro__:
            replaced(undo, owner, "apply_gradients", lambda original: _applying(original, here), given=_listed)
    loss_scale = sys.modules[tf_keras.mixed_precision.LossScaleOptimizer.__module__]
    for name in ("LossScaleOptimizer", "LossScaleOptimizerV3"):
        if hasattr(loss_scale, name):
            replaced(undo, getattr(loss_scale, name), "get_scaled_loss", _notified(here, after=_scaled))
            replaced(
                undo,
                getattr(loss_scale, name),
                "apply_gradients",
                lambda original: _applying(original, here),
                given=_listed,
            )
    # The first function that a layer calls inside its name scope, eagerly or not.
    replaced(undo, tf_keras.layers.Layer, "_maybe_cast_inputs", _notified(here, before=_entered))


def _notified(here: Here, *, before: _Notify | None = None, after: _Notify | None = None) -> _Wrap:
    """Notifies the observer before a method runs, with its arguments, or after that, with its result and these."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def method(*args: Any, **kwargs: Any) -> Any:
            if before is not None and (look := here()) is not None:
                before(look.listener, *args, **kwargs)
            result = original(*args, **kwargs)
            if after is not None and (look := here()) is not None:
                after(look.listener, result, *args, **kwargs)
            return result

        return method

    return wrap


def _scaled(listener: Collector, result: Any, optimizer: Any, loss: Any) -> None:
    if isinstance(result, tf.Tensor):
        listener.scaled(loss, result)


def _rated(listener: Collector, optimizer: Any, grads: Any, trainable_variables: Any, learning_rate: Any) -> None:
    listener.rated(optimizer, learning_rate)


def _returned(listener: Collector, result: Any, layer: Any, inputs: Any, outputs: Any, *args: Any) -> None:
    listener.returned(layer, outputs)


def _entered(listener: Collector, layer: Any, *args: Any, **kwargs: Any) -> None:
    listener.entered(layer, tf.get_current_name_scope())


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
            if (look := here()) is not None:
                _entered(look.listener, self)

        return Followed(original(self), entered, failed)

    return open_name_scope
