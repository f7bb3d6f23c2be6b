"""Copies of variables, on which a form of a step runs that changes nothing."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import handle_data_util

from tb_gradflow.trace.step.state import kept

_NUMBERS = itertools.count()


def variables_given(graph: Any) -> dict[int, Any]:
    """Which arguments of a function with this graph are variables, each with the type of its values."""
    return {
        number: tf.as_dtype(handle.shape_and_type[0].dtype)
        for number, each in enumerate(graph.inputs)
        if each.dtype == tf.resource
        and (handle := handle_data_util.get_resource_handle_data(each)).is_set
        and len(handle.shape_and_type) == 1
    }


class Copies:
    """Those of some variables, by the ids of their handles."""

    def __init__(self, made: Mapping[int, _Copy]) -> None:
        self._made = made

    def handle(self, of: Any) -> Any:
        """The copy of a variable, or another resource itself; handles of them."""
        return self._made[id(of)].handle if id(of) in self._made else of

    def read(self, variable: Any) -> Any:
        """The value of a copy, or of a variable that has none."""
        copy = self._made.get(id(getattr(variable, "handle", None)))
        return kept(variable) if copy is None else copy.value()


@contextlib.contextmanager
def copied(variables: Sequence[tuple[Any, Any, Any]]) -> Iterator[Copies]:
    """Copies that live while the context is open: of a handle, the type of its values, and the value that the copy
    has, `None` for a variable that has none yet."""
    made: dict[int, _Copy] = {}
    try:
        for handle, dtype, value in variables:
            if id(handle) not in made:
                made[id(handle)] = _Copy(handle, dtype, value)
        yield Copies(made)
    finally:
        for each in made.values():
            each.free()


class _Copy:
    """A variable that nothing else uses.

    Attributes:
        handle: Its handle.
    """

    def __init__(self, of: Any, dtype: Any, value: Any) -> None:
        self._dtype = dtype
        with tf.device(of.device):
            name = f"tb_gradflow_copy_{next(_NUMBERS)}"
            self.handle = tf.raw_ops.VarHandleOp(dtype=dtype, shape=tf.TensorShape(None), shared_name=name)
            if value is not None:
                tf.raw_ops.AssignVariableOp(resource=self.handle, value=value)

    def value(self) -> Any:
        return tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self._dtype)

    def free(self) -> None:
        tf.raw_ops.DestroyResourceOp(resource=self.handle, ignore_lookup_error=True)
