"""What the user's gradient functions return when TensorFlow calls them. They are Python of the program, so nobody
else calls them to find that out.

In a graph `tf.custom_gradient` wraps such a function in one that a tape gets, and registers another one around that,
for the gradient of a function's body.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow.python.eager import record
from tensorflow.python.framework import ops

from tb_gradflow.trace.tf_internals.patching import replaced

_WRAPPER = "_graph_mode_decorator.<locals>.tape_grad_fn"
_REGISTERED = "_graph_mode_decorator.<locals>.internal_grad_fn"

_RETURNED = "_tb_gradflow_returned"


class Returned:
    """What a gradient function has returned.

    Attributes:
        given: For each input of the op, whether it has a gradient; empty if the function was not called.
        has_raised: Whether it has raised something.
    """

    def __init__(self) -> None:
        self.given: list[bool] = []
        self.has_raised = False

    def note(self, gradients: Sequence[Any]) -> None:
        before = self.given or [False] * len(gradients)
        self.given = [has or each is not None for has, each in zip(before, gradients, strict=True)]


def note_gradients(undo: contextlib.ExitStack) -> None:
    """Until `undo` is closed, new custom gradients note what they return."""
    replaced(undo, record, "record_operation", _noting)


def is_of_custom_gradient(function: Any) -> bool:
    """Whether a registered gradient function is that of a `tf.custom_gradient`."""
    return getattr(function, "__qualname__", "").endswith(_REGISTERED)


def returned_by(function: Any) -> Returned | None:
    """What a registered gradient function has returned; `None` if that was not noted."""
    cell = _cell_of(function)
    return None if cell is None else getattr(cell.cell_contents, _RETURNED, None)


def written_by_user(function: Any) -> Any:
    """What `tf.custom_gradient` has wrapped, in a registered gradient function, before it was noted."""
    cell = _cell_of(function)
    return function if cell is None else inspect.unwrap(cell.cell_contents)


def _noting(original: Callable[..., Any]) -> Callable[..., Any]:
    def record_operation(
        op_type: Any, output_tensors: Any, input_tensors: Any, backward_function: Any, *rest: Any, **named: Any
    ) -> Any:
        if getattr(backward_function, "__qualname__", "").endswith(_WRAPPER):
            backward_function = _noted(backward_function)
            cell = _cell_of(ops.get_gradient_function(output_tensors[0].op))
            if cell is not None:
                cell.cell_contents = backward_function
        return original(op_type, output_tensors, input_tensors, backward_function, *rest, **named)

    return record_operation


def _noted(function: Callable[..., Any]) -> Callable[..., Any]:
    returned = Returned()

    @functools.wraps(function)
    def noted(*upstream: Any) -> Any:
        try:
            gradients = function(*upstream)
        except BaseException:
            returned.has_raised = True
            raise
        returned.note(gradients)
        return gradients

    vars(noted)[_RETURNED] = returned
    return noted


def _cell_of(function: Any) -> Any:
    """The variable of a registered gradient function that holds the wrapped one; `None` if there is none."""
    return closure_of(function).get("tape_grad_fn")


def closure_of(function: Any) -> dict[str, Any]:
    """The cells of the variables that a function captured, by name."""
    code, closure = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    return {} if code is None or closure is None else dict(zip(code.co_freevars, closure, strict=True))
