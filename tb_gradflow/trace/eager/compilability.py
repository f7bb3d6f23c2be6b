"""Why a step must run eagerly: TensorFlow cannot compile it, or compiles something different from what Python would
run.

`float()` and `int()` of a tensor leave TensorFlow in an eager step, but stay in it if `tf.function` has rewritten the
code.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.operators import py_builtins

from tb_gradflow.trace.eager.exits import EAGER_BASE
from tb_gradflow.trace.tf_internals.patching import replaced


@contextlib.contextmanager
def kept_inside() -> Iterator[list[str]]:
    """While the context is open, the name of each such conversion of a tensor, `float` or `int`, is appended to the
    list.
    """
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


@contextlib.contextmanager
def decisions() -> Iterator[list[str]]:
    """While the context is open, each truth value that Python or TensorFlow takes of an eager tensor is appended to the
    list: what the step would have done otherwise is not visible.
    """
    taken: list[str] = []

    def noting(original: Callable[..., Any]) -> Callable[..., Any]:
        def truth(tensor: Any) -> bool:
            taken.append(tensor.dtype.name)
            return bool(original(tensor))

        return truth

    with contextlib.ExitStack() as undo:
        replaced(undo, EAGER_BASE, "__bool__", noting)
        yield taken


def sentence_of(error: Exception) -> str:
    """The message of an error in one line: its last line that names its type, or the first one that AutoGraph and Keras
    did not add.
    """
    lines = [re.sub(r"\x1b\[\d+m", "", line).strip() for line in str(error).splitlines()]
    own = [line for line in lines if line.startswith(f"{type(error).__name__}: ")]
    plain = [line for line in lines if line and not line.startswith(_DECORATION)]
    return (own[-1] if own else next(iter(plain), "")).removeprefix(f"{type(error).__name__}: ")


_DECORATION = ("in user code:", "File ", "Exception encountered", "Arguments received", "\u2022")


HINT = (
    "tb_gradflow: `watch` compiles the step like `tf.function`. In a compiled step a tensor has no value that "
    "Python or NumPy can read. Write that line with TensorFlow ops, or run the step eagerly: call "
    "`tf.config.run_functions_eagerly(True)` before the training."
)

_WORDS = re.compile(
    r"symbolic `?tf\.Tensor|Tensor' object (has no attribute '(numpy|item|tolist)'|cannot be interpreted as)"
    r"|, not '?(Symbolic)?Tensor\b"
)


def needs_numbers(error: Exception) -> bool:
    """Whether TensorFlow reports that the step reads the value of a tensor that is being traced."""
    told = isinstance(error, tf.errors.OperatorNotAllowedInGraphError)
    return told or _WORDS.search(str(error)) is not None
