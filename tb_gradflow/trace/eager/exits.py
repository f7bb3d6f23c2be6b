"""Where an eager step's values leave TensorFlow: `.numpy()`, `float()`, an `if`, NumPy functions on a tensor.

All of Python's conversions of TensorFlow's eager tensors go through one method. NumPy's own functions read a tensor's
memory without calling it, so they are wrapped while the step runs.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.record.schema import PYTHON
from tb_gradflow.trace.eager.shadow import Shadow
from tb_gradflow.trace.graph.flat_ops import Known
from tb_gradflow.trace.protection.functions import Delegate
from tb_gradflow.trace.source.frames import PACKAGE, Frame, stack_now
from tb_gradflow.trace.source.user_line import api_name, first_meant, users_frame
from tb_gradflow.trace.tf_internals.patching import replaced

EagerTensor = tf.__internal__.EagerTensor
EAGER_BASE = next(each for each in EagerTensor.__mro__ if "_numpy" in vars(each))

# Methods of tensors and variables that return a value to Python, as the user writes them.
_METHODS = {
    "numpy": ".numpy()", "__array__": "NumPy", "__float__": "float()", "__int__": "int()", "__index__": "int()",
    "__bool__": "bool()", "__complex__": "complex()",
}  # fmt: skip

# The files that define them, and files that only forward to these.
_TENSOR_FILES = ("framework/ops.py", "framework/tensor.py", "ops/resource_variable_ops.py", "ops/variables.py")
_KERAS_TENSOR_FILES = ("common/variables.py", "tensorflow/core.py")

# They read a value only to display it.
_SHOWING = frozenset({"__repr__", "__str__", "__format__", "__reduce__", "numpy_text", "value_text"})


@dataclass(frozen=True, slots=True)
class Exit:
    """A value that left TensorFlow.

    Attributes:
        op: The op that represents it in the shadow graph; its output represents Python's value from there on.
        how: The user's code, such as `.numpy()`.
        frames: The stack, from the outside to the user's line.
        value: The value that left.
        decides: Whether Python took it as a truth value.
    """

    op: Any
    how: str
    frames: Sequence[Frame]
    value: Any
    decides: bool


class Exits:
    """The exits of one eager step, in order.

    Args:
        shadow: The shadow graph of the step.
        is_source: Whether a gradient is requested for a tensor: such a tensor matters, wherever it comes from.
    """

    def __init__(self, shadow: Shadow, is_source: Callable[[Any], bool]) -> None:
        self._is_source = is_source
        self.all: list[Exit] = []
        self._shadow = shadow
        self._seen: set[tuple[int, str, int]] = set()
        self._functions: list[str] = []

    def watch(self, undo: contextlib.ExitStack) -> None:
        """Until `undo` is closed, exits are recorded."""
        replaced(undo, EAGER_BASE, "_numpy", self._method)
        for module, prefix in ((np, "np"), (np.linalg, "np.linalg"), (np.random, "np.random")):
            for name, function in list(vars(module).items()):
                if callable(function) and not isinstance(function, type) and not name.startswith("_"):
                    replaced(undo, module, name, functools.partial(self._lookout, f"{prefix}.{name}"))

    def _method(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def _numpy(tensor: Any) -> Any:
            value = original(tensor)
            self._note(tensor, value, self._functions[-1] if self._functions else None)
            return value

        return _numpy

    def _lookout(self, name: str, original: Any) -> Any:
        """A NumPy function that also reports its tensor arguments."""

        def call(*args: Any, **kwargs: Any) -> Any:
            given = [*args, *kwargs.values()]
            flat = [each for value in given for each in (value if type(value) in (list, tuple) else (value,))]
            if all(isinstance(each, (np.ndarray, np.generic)) or not hasattr(each, "__array__") for each in flat):
                return original(*args, **kwargs)
            tensors = [each for each in flat if isinstance(each, EagerTensor)]
            return self._called(name, tensors, functools.partial(original, *args, **kwargs))

        return Delegate(call, original)

    def _called(self, name: str, tensors: Sequence[Any], function: Callable[[], Any]) -> Any:
        """Runs a NumPy function on eager tensors, or on values that may contain one."""
        for tensor in tensors:
            self._note(tensor, tensor._numpy_internal(), name)
        self._functions.append(name)
        try:
            return function()
        finally:
            self._functions.pop()

    def _note(self, tensor: Any, value: Any, function: str | None) -> None:
        if self._shadow.is_paused:
            return
        symbol = self._shadow.known_symbol(tensor)
        # Other values from outside of the step do not depend on a variable.
        if (symbol is None or symbol.op.type in ("Const", "Placeholder")) and not self._is_source(tensor):
            return
        frames = stack_now()
        way = _way_out(frames)
        if way is None:
            return
        symbol = self._shadow.symbol(tensor)
        # `how` already names the function that the user's line called.
        frames = frames[: way.start + 1]
        key = (tensor._id, frames[-1].file, frames[-1].line)
        if key not in self._seen:
            self._seen.add(key)
            self._add(symbol, value, way.how if function is None or way.through_library else function, frames)

    def _add(self, symbol: Any, value: Any, how: str, frames: Sequence[Frame]) -> None:
        decides = how == "bool()"
        kind = {"bool()": "If", "tf.numpy_function": "PyFunc"}.get(how, PYTHON)
        known = Known(kind, passes="not_differentiable", api="if" if decides else how, frames=frames)
        dtype = symbol.dtype if symbol.dtype.is_floating and not decides else tf.float32
        name = "".join(letter for letter in how.rpartition(".")[2] if letter.isalnum())
        with self._shadow.paused():
            op = self._shadow.make_opaque(name or PYTHON, [symbol], [dtype], known)
            op.outputs[0].set_shape(symbol.shape)
        self.all.append(Exit(op, how, frames, np.asarray(value), decides))


@dataclass(frozen=True, slots=True)
class _Way:
    """How a value got from TensorFlow to the user's line.

    Attributes:
        start: Index of the user's frame.
        how: The function that this line called.
        through_library: Whether a library function in between took the value out.
    """

    start: int
    how: str
    through_library: bool


def _way_out(frames: Sequence[Frame]) -> _Way | None:
    """None if TensorFlow or Keras reads a value for its own purposes."""
    start = users_frame(frames)
    if start < 0:
        return None
    # Under `tb-gradflow run` a function that is hooked stands between the user's line and Keras's.
    between = [frame for frame in frames[start + 1 :] if not frame.file.startswith(PACKAGE)]
    if any(frame.function in _SHOWING for frame in between):
        return None
    entry = first_meant(between)
    if entry is None:
        return _Way(start, "NumPy", through_library=False)
    if entry.file.endswith("script_ops.py") and entry.function == "numpy_function":
        return _Way(start, "tf.numpy_function", through_library=True)
    if entry.function in _METHODS and entry.file.endswith((*_TENSOR_FILES, *_KERAS_TENSOR_FILES)):
        return _Way(start, _METHODS[entry.function], through_library=False)
    if _TENSORFLOW in entry.file and _KERAS not in entry.file:
        return None
    # Keras also branches on values for its own purposes.
    if between[-1].function == "__bool__":
        return None
    name = f".{entry.function}()" if _KERAS in entry.file else f"{entry.function}()"
    return _Way(start, api_name(entry.file, entry.function) or name, through_library=True)


_KERAS, _TENSORFLOW = f"{os.sep}keras{os.sep}", f"{os.sep}tensorflow{os.sep}"
