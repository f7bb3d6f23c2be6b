"""Observes TensorFlow and Keras while one step is traced, and restores everything afterwards.

Nothing here changes what the patched functions return. The patches are active only while a step is traced, or runs
eagerly; compiled steps never run through them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import forwardprop

from tb_gradflow.trace.capture.collector import Collector
from tb_gradflow.trace.capture.gradient_clips import CLIPPING, MODULES, noted_by
from tb_gradflow.trace.capture.keras_patches import patch_keras
from tb_gradflow.trace.capture.observers import Here, Lookers
from tb_gradflow.trace.capture.requested_tensors import is_answer
from tb_gradflow.trace.graph.noted_gradients import note_gradients
from tb_gradflow.trace.graph.variables import is_variable
from tb_gradflow.trace.protection.functions import Called
from tb_gradflow.trace.tf_internals.asking_beneath import asking_beneath, is_tensorflows
from tb_gradflow.trace.tf_internals.patching import replaced
from tb_gradflow.trace.tf_internals.tapes import flat_gradients, with_zeros


def _install(here: Here) -> contextlib.ExitStack:
    with contextlib.ExitStack() as undo:
        replaced(undo, tf.GradientTape, "gradient", lambda original: _gradient(original, here), part=_requested)
        for name in ("jacobian", "batch_jacobian"):
            replaced(undo, tf.GradientTape, name, lambda original: _jacobian(original, here))
        for module in MODULES:
            for name in CLIPPING:
                replaced(undo, module, name, noted_by(name, here))
        note_gradients(undo)
        patch_keras(undo, here)
        return undo.pop_all()


_LOOKERS = Lookers(_install)
watching, gives_way = _LOOKERS.looking, _LOOKERS.gives_way


def _gradient(original: Callable[..., Any], here: Here) -> Callable[..., Any]:
    @functools.wraps(original)
    def gradient(
        self: Any,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = tf.UnconnectedGradients.NONE,
    ) -> Any:
        look = here()
        if look is not None and look.rows is not None and look.rows[0] is self:
            answer = original(self, target, sources, output_gradients, unconnected_gradients)
            zero = unconnected_gradients in (tf.UnconnectedGradients.ZERO, tf.UnconnectedGradients.ZERO.value)
            pairs = zip(flat_gradients(answer), tf.nest.flatten(sources), strict=True)
            look.rows[1].append([is_answer(each, source, zeros_for_none=zero) for each, source in pairs])
            return answer
        if look is None or look.quiet or self._tape is None or not _is_known(look.listener, target):
            return original(self, target, sources, output_gradients, unconnected_gradients)
        # The frame between is that of what protects the caller.
        if sys._getframe(2).f_code.co_filename == forwardprop.__file__:
            # `tf.autodiff.ForwardAccumulator` transposes twice: these gradients were not requested by the user.
            return original(self, target, sources, output_gradients, unconnected_gradients)
        # A custom gradient may use its own tape to compute its forward pass again: that is part of this result.
        look.quiet += 1
        try:
            ask = original if is_tensorflows(original) else asking_beneath(original, sources)
            return look.listener.gradient(ask, self, target, sources, output_gradients, unconnected_gradients)
        finally:
            look.quiet -= 1

    return gradient


def _requested(given: tuple[Any, ...], named: dict[str, Any], called: Called) -> Any:
    """The result of `tape.gradient` for these arguments, after a fault in its replacement; a collector calls it for
    `[sources, others]`."""
    bound = inspect.signature(tf.GradientTape.gradient).bind(*given, **named)
    sources, zeros = bound.arguments["sources"], bound.arguments.get("unconnected_gradients")
    answer = called.results[-1]
    asked = called.args[2] if len(called.args) > 2 else sources
    if asked is not sources and isinstance(asked, list) and asked and asked[0] is sources:
        answer = answer[0]
    is_zero = zeros in (tf.UnconnectedGradients.ZERO, tf.UnconnectedGradients.ZERO.value)
    return with_zeros(answer, sources) if is_zero and tf.executing_eagerly() else answer


def _is_known(listener: Collector, target: Any) -> bool:
    return any(
        is_variable(each) or (isinstance(each, tf.Tensor) and listener.knows(each)) for each in tf.nest.flatten(target)
    )


def _jacobian(original: Callable[..., Any], here: Here) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        look = here()
        if look is None:
            return original(*args, **kwargs)
        look.quiet += 1  # it requests many gradients, one for each element
        try:
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            tape, target, sources, unconnected, *_ = given.args
            if look.quiet > 1 or tape._tape is None or not _is_known(look.listener, target):
                return original(*args, **kwargs)
            look.rows = (tape, [])
            rows, count = look.rows[1], len(tf.nest.flatten(sources))

            def answered() -> tuple[Any, list[bool]]:
                answer = original(*args, **kwargs)
                return answer, [any(each) for each in zip(*rows, strict=True)] if rows else [True] * count

            return look.listener.jacobian(answered, tape, target, sources, unconnected)
        finally:
            look.rows = None
            look.quiet -= 1

    return jacobian
