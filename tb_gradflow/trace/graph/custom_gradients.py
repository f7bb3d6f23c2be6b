"""Custom gradients: `tf.custom_gradient`, and `gradient_override_map` with `tf.RegisterGradient`.

In a graph, `tf.custom_gradient` appears as an `IdentityN` of the function's results, then its arguments, then the
variables that it uses; its gradient function is registered under a generated name.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tensorflow.python.framework import ops

from tb_gradflow.record.schema import Source
from tb_gradflow.trace.graph.differentiable import custom_gradient_name, is_overridden
from tb_gradflow.trace.graph.noted_gradients import closure_of, written_by_user
from tb_gradflow.trace.source.frames import frames_of
from tb_gradflow.trace.source.user_line import first_meant, is_users
from tb_gradflow.trace.tf_internals.outside_tapes import untaped


@dataclass(frozen=True, slots=True)
class OwnGradient:
    """An op whose gradient the user wrote.

    Attributes:
        op: The op.
        function: The user's name of the function that has it; empty if the gradient is a function of TensorFlow.
        source: Where the gradient function begins; None if unknown.
        result_count: Number of inputs of an `IdentityN` that are results; None if the op itself computes.
        variable_count: Number of its last inputs that are values of variables that the function reads itself.
    """

    op: Any
    function: str
    source: Source | None
    result_count: int | None
    variable_count: int = 0

    @property
    def results(self) -> tuple[Any, ...]:
        """The results of the forward computation."""
        return tuple(self.op.outputs) if self.result_count is None else tuple(self.op.inputs)[: self.result_count]

    @property
    def arguments(self) -> tuple[tuple[int, Any], ...]:
        """The arguments of the forward computation, each with its number among the op's inputs."""
        return tuple(enumerate(self.op.inputs))[self.result_count or 0 :]

    def returned(self, upstream: Sequence[Any]) -> list[Any]:
        """The output of the gradient function for the gradients of the results, one for each of `arguments`.

        Creates ops in the default graph. Raises whatever the user's function raises.
        """
        found = untaped(ops.get_gradient_function(self.op), self.op, *upstream)
        listed = list(found) if isinstance(found, (list, tuple)) else [found]
        if len(listed) != len(self.op.inputs):
            first = self.result_count or 0
            raise ValueError(f"returns {len(listed) - first} gradients for {len(self.op.inputs) - first} arguments")
        return listed[self.result_count or 0 :]


def own_gradient(op: Any, *, by_tape: bool) -> OwnGradient | None:
    """The user's gradient of an op; None if the op has TensorFlow's, a library's, or one that the tape does not use."""
    name = custom_gradient_name(op)
    if name is None or (by_tape and is_overridden(op)):
        return None
    try:
        function = ops.get_gradient_function(op)
    except LookupError:
        return None
    if op.type != "IdentityN":
        return OwnGradient(op, _name(function, name), _source(function), None)
    # `tf.custom_gradient` keeps the user's functions in closures.
    cells = cells_of(written_by_user(function))
    counts = int(cells.get("flat_result_len", 0)), len(cells.get("variables", ()))
    return described(op, cells.get("grad_fn", function), name, *counts)


def described(op: Any, written: Any, name: str, result_count: int, variable_count: int) -> OwnGradient | None:
    """An `IdentityN` whose gradient function is `written`, from `tf.custom_gradient`; None if that is not the
    user's.
    """
    while isinstance(written, functools.partial):
        written = written.func
    code = getattr(written, "__code__", None)
    is_own = code is not None and is_users(code.co_filename)
    if not is_own and (_is_tensorflows_own(code) or not _is_called_by_user(op)):
        return None
    function = _name(written, name) if is_own else ""
    return OwnGradient(op, function, _source(written), result_count, variable_count)


def _is_tensorflows_own(code: Any) -> bool:
    """Whether the gradient function belongs to TensorFlow, as in `tf.recompute_grad`."""
    return code is not None and str(code.co_filename).endswith("custom_gradient.py")


def _is_called_by_user(op: Any) -> bool:
    """Whether the user's code directly calls a function that is decorated with `tf.custom_gradient`."""
    frames = frames_of(op.traceback)
    innermost = max((place for place, frame in enumerate(frames) if is_users(frame.file)), default=len(frames))
    called = first_meant(frames[innermost + 1 :])
    return called is not None and called.file.endswith("custom_gradient.py")


def cells_of(function: Any) -> dict[str, Any]:
    """The variables that a function captured, by name."""
    return {name: cell.cell_contents for name, cell in closure_of(function).items()}


def _name(written: Callable[..., Any], registered: str) -> str:
    """`my_square` for the `grad` inside it; a separate gradient function keeps its own name."""
    qualified = str(getattr(written, "__qualname__", registered))
    outer, _, inner = qualified.rpartition(".<locals>.")
    own = (outer or inner).rpartition(".")[2]
    # AutoGraph's prefix for converted functions.
    return own.removeprefix("tf__") if own.isidentifier() or own.startswith("<") else registered


def _source(written: Callable[..., Any]) -> Source | None:
    code = getattr(written, "__code__", None)
    if code is None or not is_users(code.co_filename) or "__autograph_generated" in code.co_filename:
        return None
    line = code.co_firstlineno
    text = linecache.getline(code.co_filename, line).strip()
    return Source(code.co_filename, line, code.co_name, text)
