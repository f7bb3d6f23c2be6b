"""Looks over TensorFlow's and Keras's shoulder while one step is traced, and puts everything back afterwards.

Nothing here changes what the patched functions return. The patches stand only while the instrumented step is
being traced; compiled steps never run through them.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tb_gradflow.trace.collector import Collector
from tb_gradflow.trace.replaced import replaced

_LOCK = threading.RLock()


@contextlib.contextmanager
def watching(collector: Collector) -> Iterator[None]:
    """While the context is open, `collector` hears of every gradient, scaled loss, update and layer."""
    with _LOCK, contextlib.ExitStack() as undo:
        quiet = _Quiet()
        replaced(undo, tf.GradientTape, "gradient", lambda original: _gradient(original, collector, quiet))
        for name in ("jacobian", "batch_jacobian"):
            replaced(undo, tf.GradientTape, name, lambda original: _left_alone(original, quiet))
        replaced(undo, polymorphic_function.Function, "__call__", _fresh_copies)
        _patch_keras(undo, collector)
        yield


class _Quiet:
    """Whether TensorFlow is calling `gradient` for a purpose of its own."""

    depth = 0


def _gradient(original: Callable[..., Any], collector: Collector, quiet: _Quiet) -> Callable[..., Any]:
    @functools.wraps(original)
    def gradient(
        self: Any,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = tf.UnconnectedGradients.NONE,
    ) -> Any:
        known = [t for t in tf.nest.flatten(target) if isinstance(t, tf.Tensor) and collector.knows(t)]
        if quiet.depth or not known or self._tape is None:
            return original(self, target, sources, output_gradients, unconnected_gradients)
        # A custom gradient may use a tape of its own, to compute its forward pass again: that is part of this answer.
        quiet.depth += 1
        try:
            return collector.gradient(original, self, target, sources, output_gradients, unconnected_gradients)
        finally:
            quiet.depth -= 1

    return gradient


def _left_alone(original: Callable[..., Any], quiet: _Quiet) -> Callable[..., Any]:
    @functools.wraps(original)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        quiet.depth += 1
        try:
            return original(*args, **kwargs)
        finally:
            quiet.depth -= 1

    return jacobian


def _fresh_copies(original: Callable[..., Any]) -> Callable[..., Any]:
    """A `tf.function` inside the step keeps what it was traced to. An instrumented trace must not end up in the
    user's own function, nor a plain one in ours: a copy is traced instead."""
    copies: dict[int, tuple[Any, Any]] = {}

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if tf.executing_eagerly():
            return original(self, *args, **kwargs)
        if id(self) not in copies:
            copies[id(self)] = (self, self._clone(None))
        return original(copies[id(self)][1], *args, **kwargs)

    return call


def _patch_keras(undo: contextlib.ExitStack, collector: Collector) -> None:
    import keras

    base = next(c for c in keras.optimizers.Optimizer.__mro__ if "apply" in vars(c) and "scale_loss" in vars(c))
    for owner in (base, keras.optimizers.LossScaleOptimizer):
        replaced(undo, owner, "scale_loss", lambda original: _scale_loss(original, collector))
        replaced(undo, owner, "apply", lambda original: _apply(original, collector))
    replaced(undo, keras.layers.Layer, "_open_name_scope", lambda original: _name_scope(original, collector))


def _scale_loss(original: Callable[..., Any], collector: Collector) -> Callable[..., Any]:
    @functools.wraps(original)
    def scale_loss(self: Any, loss: Any) -> Any:
        result = original(self, loss)
        if isinstance(result, tf.Tensor) and collector.knows(result):
            collector.scaled(loss, result)
        return result

    return scale_loss


def _apply(original: Callable[..., Any], collector: Collector) -> Callable[..., Any]:
    @functools.wraps(original)
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        return collector.applying(lambda: original(self, *args, **kwargs))

    return apply


def _name_scope(original: Callable[..., Any], collector: Collector) -> Callable[..., Any]:
    @functools.wraps(original)
    @contextlib.contextmanager
    def open_name_scope(self: Any) -> Iterator[Any]:
        with original(self) as scope:
            collector.entered(self, tf.get_current_name_scope())
            yield scope

    return open_name_scope
