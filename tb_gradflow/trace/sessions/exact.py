"""Which tensors a recorded step may fetch without a change of how the training rounds, and the values of the others.

TensorFlow optimises the graph of each kind of `run` anew, and does not merge an op with its consumer if its value is
fetched (see `numerics.fusion`). So a tensor that may be merged is not fetched. A gradient among them is computed again
from the tensors before it, in NumPy, if that takes a few elementwise ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.trace.numerics.fusion import is_constant, may_be_merged, may_be_merged_into
from tb_gradflow.trace.sessions.executions import Execution

Array = npt.NDArray[Any]
Values = Mapping[str, Array]
"""Values of tensors, by name."""

# Ops whose result the optimizer may replace by their input.
_SEEN_THROUGH = frozenset(
    {"Identity", "Reshape", "Squeeze", "ExpandDims", "StopGradient", "PreventGradient", "Snapshot", "CheckNumerics"}
)

_DEEPEST = 8


def is_exact(tensor: Any) -> bool:
    """Whether fetching a tensor leaves it as it is how TensorFlow rounds."""
    if is_constant(tensor.op):
        return False  # it would no longer be known before the run, and not be merged with what it multiplies
    origin = tensor
    while origin.op.type in _SEEN_THROUGH:
        origin = origin.op.inputs[0]
    if origin.op.type == "Const":
        return False
    for each in _copies_of(origin):
        if may_be_merged(each) or any(may_be_merged_into(origin, taker) for taker in each.consumers()):
            return False
    return True


def _copies_of(origin: Any) -> Iterator[Any]:
    stack = [origin]
    while stack:
        each = stack.pop()
        yield each
        stack.extend(user.outputs[0] for user in each.consumers() if user.type in _SEEN_THROUGH)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to get the value of a tensor.

    Attributes:
        fetches: The tensors to fetch for it.
        compute: Computes it from their values.
    """

    fetches: tuple[Any, ...]
    compute: Callable[[Values], Array]


def recipe_for(tensor: Any, execution: Execution, depth: int = _DEEPEST) -> Recipe | None:
    """How to get the value of a tensor in a run; `None` if that could change how the training rounds, or takes too
    much.
    """
    if tensor.name in execution.fetched or (execution.may_fetch(tensor) and is_exact(tensor)):
        return Recipe((tensor,), lambda values: values[tensor.name])
    if depth == 0:
        return None
    known = tf.get_static_value(tensor)
    if known is not None:
        return Recipe((), lambda values: np.asarray(known))
    op = tensor.op
    compute = _function_of(op, _known_shape(tensor))
    if compute is None:
        return None
    inputs = op.inputs if op.type in _ELEMENTWISE else op.inputs[:1]
    parts = [recipe_for(each, execution, depth - 1) for each in inputs]
    found = [part for part in parts if part is not None]
    return _combined(found, compute) if len(found) == len(parts) else None


def _function_of(op: Any, shape: tuple[int, ...] | None) -> Callable[..., Any] | None:
    """The same in NumPy, of the inputs that are not sizes or axes."""
    if op.type == "Sum":
        return _sum_of(op, shape)
    if op.type in _RESHAPING:
        return None if shape is None else lambda value: np.reshape(value, shape)
    return np.asarray if op.type in _SEEN_THROUGH else _ELEMENTWISE.get(op.type)


def _combined(parts: Sequence[Recipe], compute: Callable[..., Any]) -> Recipe:
    def value(values: Values) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(compute(*(part.compute(values) for part in parts)))

    return Recipe(tuple(each for part in parts for each in part.fetches), value)


_RESHAPING = frozenset({"Reshape", "Squeeze", "ExpandDims"})

_ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "Mul": np.multiply,
    "RealDiv": np.divide,
    "Div": np.divide,
    "Neg": np.negative,
    "Add": np.add,
    "AddV2": np.add,
    "Sub": np.subtract,
    "AddN": lambda *terms: np.sum(np.stack(terms), axis=0),
    "Pow": np.power,
}


def _known_shape(tensor: Any) -> tuple[int, ...] | None:
    shape = tensor.shape
    return tuple(shape.as_list()) if shape.is_fully_defined() else None


def _sum_of(op: Any, shape: tuple[int, ...] | None) -> Callable[[Array], Array] | None:
    """The sum over some axes. Those along which a factor was broadcast follow from the shape of the result, which a
    `Reshape` restores.
    """
    axes = tf.get_static_value(op.inputs[1])
    if axes is not None:
        chosen, kept = tuple(np.ravel(axes).tolist()), bool(op.get_attr("keep_dims"))
        return lambda value: np.sum(value, axis=chosen, keepdims=kept)
    restored = [_known_shape(user.outputs[0]) for user in op.outputs[0].consumers() if user.type == "Reshape"]
    target = next((each for each in restored if each is not None), shape)
    return None if target is None else lambda value: _summed_to(value, target)


def _summed_to(value: Array, shape: tuple[int, ...]) -> Array:
    """The sum over the axes along which an array of this shape was broadcast."""
    extra = value.ndim - len(shape)
    value = np.sum(value, axis=tuple(range(extra)))
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and value.shape[axis] != 1)
    return np.sum(value, axis=stretched, keepdims=True)
