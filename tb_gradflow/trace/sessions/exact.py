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

from tb_gradflow.trace.numerics.fusion import COPIES, is_constant, is_of_broadcast, may_be_merged, may_be_merged_into
from tb_gradflow.trace.sessions.executions import Execution, variable_read_by

Array = npt.NDArray[Any]
Values = Mapping[str, Array]
"""Values of tensors by name, and of variables by the name of the op that creates them."""

# Ops whose result the optimizer may replace by their input, if nothing fetches it. The input is fetched in their place.
_RESHAPING = frozenset({"Reshape", "Squeeze", "ExpandDims"})
_SEEN_THROUGH = COPIES | _RESHAPING

_DEEPEST = 8


def is_exact(tensor: Any) -> bool:
    """Whether fetching a tensor, which no op has copied, leaves it as it is how TensorFlow rounds."""
    if is_constant(tensor.op):
        return False  # it would no longer be known before the run, and not be merged with what it multiplies
    if tensor.op.type == "Sqrt":
        return False  # a division by a root becomes a multiplication
    for each in _copies_of(tensor):
        if may_be_merged(each) or any(may_be_merged_into(tensor, taker) for taker in each.consumers()):
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
        variables: The names of the ops that create the variables whose values before the run it needs too.
    """

    fetches: tuple[Any, ...]
    compute: Callable[[Values], Array]
    variables: tuple[str, ...] = ()


def recipe_for(tensor: Any, execution: Execution, is_gradient: Callable[[Any], bool]) -> Recipe | None:
    """How to get the elements of a tensor in a run, in some shape; `None` if that could change how the training rounds,
    or takes too much. `is_gradient` tells whether an op computes a gradient.
    """
    while _is_copy(tensor.op) and tensor.name not in execution.fetched and not is_of_broadcast(tensor.op):
        tensor = tensor.op.inputs[0]
    return _Recipes(execution, is_gradient).recipe(tensor, _DEEPEST)


@dataclass(frozen=True, slots=True)
class _Recipes:
    execution: Execution
    is_gradient: Callable[[Any], bool]

    def recipe(self, tensor: Any, depth: int) -> Recipe | None:
        """The same in its own shape."""
        execution = self.execution
        op = tensor.op
        if tensor.name in execution.fed:
            return Recipe((), lambda values: values[tensor.name])
        variable = variable_read_by(tensor)
        if variable is not None and tensor.dtype.base_dtype.is_floating:
            return Recipe((), lambda values: values[variable], (variable,))
        if tensor.name in execution.fetched or self._may_fetch(tensor, depth):
            return Recipe((tensor,), lambda values: values[tensor.name])
        if depth == 0:
            return None
        known = tf.get_static_value(tensor)
        if known is not None:
            return Recipe((), lambda values: np.asarray(known))
        if is_of_broadcast(op):
            summed = op.inputs[0].op if op.type == "Reshape" else op
            inputs, compute = summed.inputs[:1], _unbroadcasting(tensor.shape if op.type == "Reshape" else None)
        else:
            inputs = op.inputs if op.type == "MatMul" or op.type in _ELEMENTWISE else op.inputs[:1]
            compute = _function_of(op)
        if compute is None:
            return None
        parts = [self.recipe(each, depth - 1) for each in inputs]
        found = [part for part in parts if part is not None]
        return _combined(found, compute) if len(found) == len(parts) else None

    def _may_fetch(self, tensor: Any, depth: int) -> bool:
        """Of the forward pass only what gradients read in this run anyway, and what is asked for itself: anything else
        may be merged in more ways.
        """
        if self.execution.is_racing:
            return False
        takers = (each for each in tensor.consumers() if each.name in self.execution.ops)
        is_read = depth == _DEEPEST or any(map(self.is_gradient, (tensor.op, *takers)))
        return is_read and _is_kept(tensor.op) and self.execution.may_fetch(tensor) and is_exact(tensor)


def _is_kept(op: Any) -> bool:
    """Whether the optimizer does not replace an op by its input."""
    return not _is_copy(op) and not (is_of_broadcast(op) and not _is_certain(op))


def _is_copy(op: Any) -> bool:
    """Whether an op copies something that can be fetched in its place: not the result of a branch or a loop."""
    return op.type in _SEEN_THROUGH and op.graph.is_fetchable(op.inputs[0])


def _is_certain(summing: Any) -> bool:
    """Whether something was broadcast. If nothing was, the optimizer removes the sum."""
    target = next((user.outputs[0] for user in summing.outputs[0].consumers() if user.type == "Reshape"), None)
    given = summing.inputs[0].shape
    if target is None or given.rank is None or target.shape.rank is None:
        return False
    if given.rank != target.shape.rank:
        return True
    sizes = zip(given.as_list(), target.shape.as_list(), strict=True)
    return any(size == 1 and before is not None and before != 1 for before, size in sizes)


def _unbroadcasting(shape: Any) -> Callable[[Array], Array] | None:
    """Sums over the axes along which an array of this shape was broadcast. Sizes that are not known are taken for those
    of the array.
    """
    if shape is None or shape.rank is None:
        return None
    sizes = shape.as_list()

    def compute(value: Array) -> Array:
        value = np.sum(value, axis=tuple(range(value.ndim - len(sizes))))
        stretched = tuple(axis for axis, size in enumerate(sizes) if size == 1 and value.shape[axis] != 1)
        return np.asarray(np.sum(value, axis=stretched, keepdims=True))

    return compute


def _function_of(op: Any) -> Callable[..., Any] | None:
    """The same as an op in NumPy, of its inputs that are not sizes or axes."""
    if op.type == "Sum":
        axes = tf.get_static_value(op.inputs[1])
        if axes is None:
            return None
        chosen, kept = tuple(np.ravel(axes).tolist()), bool(op.get_attr("keep_dims"))
        return lambda value: np.sum(value, axis=chosen, keepdims=kept)
    if op.type in _RESHAPING:
        shape = op.outputs[0].shape
        sizes = shape.as_list() if shape.is_fully_defined() else None
        return None if sizes is None else lambda value: np.reshape(value, sizes)
    if op.type == "MatMul":
        turned = [bool(op.get_attr(name)) for name in ("transpose_a", "transpose_b")]
        return lambda *factors: np.matmul(
            *(each.T if turn else each for each, turn in zip(factors, turned, strict=True))
        )
    return np.asarray if op.type in COPIES else _ELEMENTWISE.get(op.type)


def _combined(parts: Sequence[Recipe], compute: Callable[..., Any]) -> Recipe:
    def value(values: Values) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(compute(*(part.compute(values) for part in parts)))

    fetches = tuple(each for part in parts for each in part.fetches)
    return Recipe(fetches, value, tuple(each for part in parts for each in part.variables))


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
    "Select": np.where,
    "SelectV2": np.where,
}
