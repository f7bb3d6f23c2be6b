"""Records each `tf.function` that takes a gradient, like `watch`, when the program calls it."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.util import traceback_utils

from tb_gradflow.trace.program import eager_loops, hooks
from tb_gradflow.trace.program.attention import (
    Call,
    called_alone,
    called_observed,
    calls_of_replicas,
    first_call,
    is_left_alone,
    left_alone,
    observed,
)
from tb_gradflow.trace.program.code import of_library, seems_to_take_gradients
from tb_gradflow.trace.program.faults import report, reported
from tb_gradflow.trace.program.recording import Place, Recording, keep_with, kept_with
from tb_gradflow.trace.protection.functions import chosen, protected

_LEFT_ALONE, _NOT_YET, _LIKELY = object(), object(), object()
"""Functions that are not recorded; that have taken no gradient yet; and that probably take one, but were not called
yet.
"""


def install() -> None:
    """Permanently replaces the functions that call a `tf.function`."""
    kind = polymorphic_function.Function
    original = vars(kind)["__call__"]
    kind.__call__ = chosen(original, _choosing(original), report)
    kind.__getstate__ = protected(vars(kind)["__getstate__"], _without_kept, report)
    for name in ("gradient", "jacobian", "batch_jacobian"):
        setattr(tf.GradientTape, name, protected(vars(tf.GradientTape)[name], _taking, report))


def is_recorded_by_its_author() -> None:
    """Called when the program has called `summary.gradients`."""
    if (call := first_call()) is not None:
        call.by_author = True


def _taking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def take(*args: Any, **kwargs: Any) -> Any:
        call = first_call()
        in_replica = call is None and eager_loops.is_one_of_several()
        for each in calls_of_replicas() if in_replica else [call]:
            if each is not None:
                each.takes_gradients = True
        with eager_loops.taking_gradient():
            return original(*args, **kwargs)

    return take


def _choosing(original: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """Returns the function that chooses how a call is made."""
    seen: Callable[..., Any] = protected(original, _observing, report)

    def choose(function: Any, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        recording = hooks.current()
        if recording is None or is_left_alone() or not tf.executing_eagerly() or eager_loops.is_part_of_a_step():
            return original
        kept = kept_with(function, recording)
        state = _first_seen(recording, function) if kept is None else kept.value
        if state is _LEFT_ALONE:
            return original
        if state is _NOT_YET:
            return seen
        if state is _LIKELY:
            return _trying(original, recording, function)
        eager_loops.close()
        return functools.partial(called_alone, _step_of(state))

    return choose


def _first_seen(recording: Recording, function: Any) -> object:
    """Decides what to do with a function that is not known yet."""
    plain = function.python_function
    with reported():
        if of_library(plain):
            return keep_with(function, recording, _LEFT_ALONE).value
        if seems_to_take_gradients(plain):
            return _LIKELY
    return keep_with(function, recording, _NOT_YET).value


def _step_of(watched: Any) -> Any:
    """A recorded step whose exceptions have the traceback that TensorFlow gives those of a `tf.function`."""
    return traceback_utils.filter_traceback(watched)


def _trying(original: Callable[..., Any], recording: Recording, function: Any) -> Callable[..., Any]:
    """Makes the first call of a function that probably trains: if it does, it is recorded from its first step on."""
    place, watched = _watched(recording, function)
    if place is None:
        keep_with(function, recording, _LEFT_ALONE)
        return original
    eager_loops.close()

    def ended(call: Call) -> None:
        if call.takes_gradients and not call.by_author:
            keep_with(function, recording, watched)
        else:
            watched.discard()
            recording.drop(place)
            keep_with(function, recording, _LEFT_ALONE if call.by_author else _NOT_YET)

    return functools.partial(called_observed, _step_of(watched), ended)


def _observing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a call of a function that has taken no gradient yet. Once a trace of it takes one, it is recorded from the
    next call on.
    """

    def see(function: Any, *args: Any, **kwargs: Any) -> Any:
        recording = hooks.current()
        # If functions run eagerly, its gradients do not belong to an eager loop.
        with observed() as call, left_alone() if tf.config.functions_run_eagerly() else contextlib.nullcontext():
            outputs = original(function, *args, **kwargs)
        if recording is None:
            return outputs
        if call.by_author:
            keep_with(function, recording, _LEFT_ALONE)
        elif call.takes_gradients:
            _, watched = _watched(recording, function)
            keep_with(function, recording, _LEFT_ALONE if watched is None else watched)
        return outputs

    return see


def _watched(recording: Recording, function: Any) -> tuple[Place | None, Any]:
    with reported():
        place = recording.begin(name_of(function.python_function))
        if place is not None:
            # Keras is loaded here at the latest; a program that trains nothing does not load it.
            from tb_gradflow.trace.program.recorders import watching

            watched = watching(recording, place, function)
            recording.keeps(watched)
            return place, watched
    return None, None


def name_of(function: Any) -> str:
    """The name that its author uses; for a lambda, the line that contains it."""
    plain = inspect.unwrap(function)
    while isinstance(plain, functools.partial):
        plain = inspect.unwrap(plain.func)
    plain = getattr(plain, "__func__", plain)
    name = str(getattr(plain, "__name__", type(plain).__name__))
    if name != "<lambda>":
        return name
    return eager_loops.name_of_line(plain.__code__.co_filename, plain.__code__.co_firstlineno)


def _without_kept(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def getstate(self: Any) -> Any:
        state = original(self)
        state.pop("_tb_gradflow_kept", None)
        return state

    return getstate
