"""A tape's `gradient` that the program, or a library in it, has replaced: it clips, averages or logs the gradients, and
knows only what its own callers ask for.

The tensors that the recorder asks for in addition are requested beneath it, where TensorFlow's own `gradient` calls the
tape.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import backprop, imperative_grad

from tb_gradflow.trace.protection import functions
from tb_gradflow.trace.tf_internals.patching import replaced


def is_tensorflows(gradient: Callable[..., Any]) -> bool:
    """Whether a tape's `gradient` is TensorFlow's, behind stand-ins of the recorder's."""
    return _code_file(_behind_stand_ins(gradient)) == str(backprop.__file__)


def asking_beneath(gradient: Callable[..., Any], sources: Any) -> Callable[..., Any]:
    """Returns a function that asks this `gradient` for `[sources, others]`."""

    def ask(tape: Any, target: Any, wanted: Any, *rest: Any, **named: Any) -> Any:
        if not (isinstance(wanted, list) and len(wanted) == 2 and wanted[0] is sources):
            return _tensorflows(gradient)(tape, target, wanted, *rest, **named)
        asked_of, others = tape._tape, wanted[1]
        found: list[Any] = [None] * len(others)

        def adding(original: Callable[..., Any]) -> Callable[..., Any]:
            def imperative(of: Any, targets: Any, given: Any, *more: Any, **options: Any) -> Any:
                if of is not asked_of:
                    return original(of, targets, given, *more, **options)
                if options.get("sources_raw") is not None:
                    options["sources_raw"] = [*options["sources_raw"], *others]
                answers = original(of, targets, [*given, *map(_handle, others)], *more, **options)
                found[:] = answers[len(given) :]
                return answers[: len(given)]

            return imperative

        with contextlib.ExitStack() as undo:
            replaced(undo, imperative_grad, "imperative_grad", adding)
            answer = gradient(tape, target, sources, *rest, **named)
        return answer, found

    return ask


def _handle(source: Any) -> Any:
    return source.handle if isinstance(source, tf.Variable) else source


def _tensorflows(gradient: Callable[..., Any]) -> Callable[..., Any]:
    """TensorFlow's own, if the replacement says what it wraps."""
    found: Any = gradient
    while found is not None and _code_file(found) != backprop.__file__:
        found = getattr(found, "__wrapped__", None)
    return gradient if found is None else found


def _behind_stand_ins(function: Any) -> Any:
    while _code_file(function) == functions.__file__ and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _code_file(function: Any) -> str | None:
    return getattr(getattr(function, "__code__", None), "co_filename", None)
