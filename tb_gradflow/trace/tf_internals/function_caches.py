"""Sets the traces of a `tf.function` aside for a while, or those that it gets in that time."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.function.polymorphism.function_cache import FunctionCache
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.eager.polymorphic_function.concrete_function import (
    ConcreteFunction,
    _DelayedRewriteGradientFunctions,
)

from tb_gradflow.trace.protection.living_objects import instances_of
from tb_gradflow.trace.tf_internals.patching import replaced


@contextlib.contextmanager
def traced_anew(is_meant: Callable[[Any], bool]) -> Iterator[None]:
    """While the context is open, `tf.function`s whose Python function is selected are traced again when they are
    called.

    Afterwards they have their previous traces again.
    """
    functions = instances_of(polymorphic_function.Function)
    caches = [each._function_cache for each in functions if is_meant(each.python_function)]
    fresh = [(cache, cache._primary, cache._dispatch_dict) for cache in caches]
    for cache in caches:
        empty = FunctionCache()
        cache._primary, cache._dispatch_dict = empty._primary, empty._dispatch_dict
    try:
        yield
    finally:
        for cache, primary, dispatch in fresh:
            cache._primary, cache._dispatch_dict = primary, dispatch


@contextlib.contextmanager
def traces_set_back(*, anew: bool) -> Iterator[list[Any]]:
    """While the context is open, a `tf.function` that this thread traces into a graph has the traces that it had, or
    none with `anew`, and computes its gradients anew. Afterwards it has those that it had, unless it has created its
    variables in the meantime. Those that had traces are appended to the list.
    """
    met: dict[int, Callable[[], None]] = {}
    known: list[Any] = []
    thread = threading.get_ident()

    def meeting(original: Callable[..., Any], kept: Callable[[Any], Callable[[], None]]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if id(self) not in met and threading.get_ident() == thread and not tf.executing_eagerly():
                met[id(self)] = kept(self)
            return original(self, *args, **kwargs)

        return call

    with contextlib.ExitStack() as undo:
        for owner, name, kept in (
            (polymorphic_function.Function, "__call__", functools.partial(_traces_kept, known=known, anew=anew)),
            (ConcreteFunction, "_select_forward_and_backward_functions", functools.partial(_set_aside, names=_BY_TAPE)),
            (_DelayedRewriteGradientFunctions, "forward_backward", functools.partial(_set_aside, names=_BY_REWRITING)),
        ):
            replaced(undo, owner, name, functools.partial(meeting, kept=kept))
        try:
            yield known
        finally:
            for set_back in met.values():
                set_back()


_BY_TAPE = ("_first_order_tape_functions", "_higher_order_tape_functions")
_BY_REWRITING = ("_cached_function_pairs",)
_STATE = (
    *("_created_variables", "_variable_creation_config", "_no_variable_creation_config"),
    "_omit_frequent_tracing_warning",
)


def _traces_kept(function: Any, known: list[Any], *, anew: bool) -> Callable[[], None]:
    """Returns what gives a `tf.function` the traces back that it has now."""
    known += [function] * bool(function._function_cache._primary)
    state = {name: getattr(function, name) for name in _STATE}
    # It is traced anew for each edit that is tried, and TensorFlow would warn of that.
    function._omit_frequent_tracing_warning = True
    cache = function._function_cache
    primary, dispatch = cache._primary, cache._dispatch_dict
    own = FunctionCache()
    if not anew:
        own._primary.update(primary)
        own._dispatch_dict.update((key, _copy(each)) for key, each in dispatch.items())
    cache._primary, cache._dispatch_dict = own._primary, own._dispatch_dict

    def set_back() -> None:
        if state["_created_variables"] or not function._created_variables:
            vars(function).update(state)
            cache._primary, cache._dispatch_dict = primary, dispatch

    return set_back


def _copy(table: Any) -> Any:
    """A table of the types that a function was traced for, which can be changed without the original."""
    made = type(table)()
    for each in table.targets:
        made.add_target(each)
    return made


def _set_aside(owner: Any, names: Sequence[str]) -> Callable[[], None]:
    """The same for functions that compute gradients: there are none for now."""
    before = {name: getattr(owner, name) for name in names}
    vars(owner).update({name: {} for name in names})
    return lambda: vars(owner).update(before)
