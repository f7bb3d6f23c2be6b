"""Conversions that leave TensorFlow in an eager step and stay in it where `tf.function` has rewritten the code."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow.python.autograph.operators import py_builtins

from tb_gradflow.trace.replaced import replaced


@contextlib.contextmanager
def kept_inside() -> Iterator[list[str]]:
    """While the context is open, the list grows by the name of each such conversion of a tensor: `float`, `int`."""
    kept: list[str] = []

    def noting(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def convert(*args: Any, **kwargs: Any) -> Any:
            kept.append(name)
            return original(*args, **kwargs)

        return convert

    with contextlib.ExitStack() as undo:
        for name in ("float", "int"):
            replaced(undo, py_builtins, f"_tf_{name}", functools.partial(noting, name))
        yield kept
