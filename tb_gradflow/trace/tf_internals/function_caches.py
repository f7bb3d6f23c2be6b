"""Sets the traces of a `tf.function` aside for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow.core.function.polymorphism.function_cache import FunctionCache
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tb_gradflow.trace.protection.living_objects import instances_of


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
