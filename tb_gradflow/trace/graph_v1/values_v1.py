"""The values that a `tf.compat.v1` graph needs before it can be run elsewhere: variables and fed placeholders.

Everything is read from the user's session without adding anything to the graph, and without running anything that has a
state, such as an iterator over data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.errors import SetupError
from tb_gradflow.trace.engine.reached import reached
from tb_gradflow.trace.graph_v1.graph_copy import copied
from tb_gradflow.trace.graph_v1.variables_v1 import MAKERS


class CannotMeasureError(Exception):
    """The graph cannot be run; the message is the reason, as a whole sentence."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values for the copy of a graph.

    Attributes:
        variables: By the name of the op that creates the handle or the reference.
        fed: By the name of the tensor.
        invented: The placeholders for which numbers were invented, by the names of their ops.
        note: A note about these values for the reader; may be empty.
    """

    variables: dict[str, Any]
    fed: dict[str, Any]
    invented: tuple[str, ...] = ()
    note: str = ""


def values_for(loss: Any, feed_dict: Mapping[Any, Any] | None) -> Iterator[Values]:
    """The values for running `loss` outside of its session: several sets to try if numbers must be invented for
    placeholders. Raises CannotMeasureError if they are not available; SetupError if `feed_dict` does not match the
    graph.
    """
    fed = _fed(loss.graph, feed_dict or {})
    needed = _needed([loss], set(fed))
    missing = [op for op in needed if op.type == "Placeholder" and op.outputs[0].name not in fed]
    for op in needed:
        _refuse(op, fed)
    variables, note = _variables(loss.graph, [op for op in needed if op.type in MAKERS])
    if not missing:
        yield Values(variables, fed, note=note)
        return
    names = tuple(sorted(op.name for op in missing))
    for draw in _DRAWS:
        invented = {op.outputs[0].name: _invented(op.outputs[0], draw) for op in missing}
        if any(value is None for value in invented.values()):
            raise CannotMeasureError(to_be_fed(names))
        yield Values(variables, {**fed, **invented}, names, note)


def with_values_of(values: Values, ops: Sequence[Any]) -> Values:
    """The same, including the values of ops that must run in the default session. Raises CannotMeasureError if these
    are not known.
    """
    graph, session = ops[0].graph, tf.compat.v1.get_default_session()
    needed = {each.name: each for op in ops for each in _needed(op.inputs, set(values.fed))}
    missing = [op for op in needed.values() if op.type == "Placeholder" and op.outputs[0].name not in values.fed]
    if missing or session is None or session.graph is not graph:
        raise CannotMeasureError(to_be_fed(tuple(op.name for op in missing)) if missing else "There is no session.")
    for op in needed.values():
        _refuse(op, values.fed)
    makers = [op for op in needed.values() if op.type in MAKERS and op.name not in values.variables]
    return replace(values, variables={**values.variables, **_read(session, makers)})


def to_be_fed(names: Sequence[str]) -> str:
    """Why nothing could be measured if placeholders were not fed."""
    listed = " and ".join(f"`{name}`" for name in names)
    values = ", ".join(f"{name}: value" for name in names)
    have = "has" if len(names) == 1 else "have"
    return f"{listed} {have} to be fed, so nothing was measured: pass `feed_dict={{{values}}}`."


# Numbers that most functions accept, the safest first: they only show that a gradient arrives.
_DRAWS: tuple[Callable[[Any, tuple[int, ...]], Any], ...] = (
    lambda generator, shape: generator.uniform(0.2, 0.8, shape),
    lambda generator, shape: generator.normal(size=shape),
)
_UNKNOWN_SIZE = 4


def _invented(tensor: Any, draw: Callable[[Any, tuple[int, ...]], Any]) -> Any:
    """Numbers for a placeholder; `None` if it is not numeric. Integers may be indices: zero is always valid."""
    sizes = [None] if tensor.shape.rank is None else tensor.shape.as_list()
    shape = tuple(_UNKNOWN_SIZE if size is None else int(size) for size in sizes)
    if tensor.dtype.is_floating or tensor.dtype.is_complex:
        return np.asarray(draw(np.random.default_rng(0), shape), tensor.dtype.as_numpy_dtype)
    if tensor.dtype.is_integer or tensor.dtype.is_bool:
        return np.zeros(shape, tensor.dtype.as_numpy_dtype)
    return None


def _variables(graph: Any, makers: Sequence[Any]) -> tuple[dict[str, Any], str]:
    """The values of variables, and a note if they are not those of a session."""
    if not makers:
        return {}, ""
    session = tf.compat.v1.get_default_session()
    if session is not None and session.graph is graph:
        return _read(session, makers), ""
    return _initial(graph, makers), (
        "This graph has no default session, so its variables got their initial values. To measure with other "
        "values, call `explain` inside `with tf.compat.v1.Session() as session:`."
    )


def _initial(graph: Any, makers: Sequence[Any]) -> dict[str, Any]:
    """The initial values of variables, which a copy of the graph computes."""
    initialisers = [op.name for op in graph.get_operations() if is_initialiser(op)]
    twin = copied(graph)
    try:
        with tf.compat.v1.Session(graph=twin) as session:
            session.run([twin.get_operation_by_name(name) for name in initialisers])
            fetches = {op.name: twin.get_tensor_by_name(value_of(op).name) for op in makers}
            return dict(session.run(fetches))
    except tf.errors.OpError as error:
        raise CannotMeasureError(
            "This graph has no default session, so nothing was measured: call `explain` inside `with "
            "tf.compat.v1.Session() as session:`, after the variables are initialized."
        ) from error


def is_initialiser(op: Any) -> bool:
    """The initial assignment of a variable, which `get_variable` creates with it."""
    return (
        bool(op.inputs) and op.name.startswith(op.inputs[0].op.name + "/") and op.type in ("Assign", "AssignVariableOp")
    )


def _fed(graph: Any, feed_dict: Mapping[Any, Any]) -> dict[str, Any]:
    found = {}
    for key, value in (part for pair in feed_dict.items() for part in _parts(*pair)):
        try:
            tensor = graph.as_graph_element(key, allow_operation=False)
        except (TypeError, ValueError, KeyError) as error:
            raise SetupError(f"feed_dict: {key!r:.80} is not a tensor of the loss's graph") from error
        array = np.asarray(value, tensor.dtype.as_numpy_dtype)
        if not tensor.shape.is_compatible_with(array.shape):
            raise SetupError(f"feed_dict: {tensor.name} has shape {tensor.shape}, got {array.shape}")
        found[tensor.name] = array
    return found


def _parts(key: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    """The fed values of one placeholder: for a sparse or ragged one, those of each of its component tensors."""
    if isinstance(key, tf.SparseTensor):
        yield from zip((key.indices, key.values, key.dense_shape), tuple(_components(value)), strict=True)
    elif isinstance(key, tf.RaggedTensor):
        yield key.flat_values, value.flat_values
        yield from zip(key.nested_row_splits, value.nested_row_splits, strict=True)
    else:
        yield key, value


def _components(value: Any) -> Sequence[Any]:
    """Indices, values and shape that are fed to a sparse placeholder: as one object or as a tuple."""
    return value if isinstance(value, tuple) else (value.indices, value.values, value.dense_shape)


def _needed(ends: Iterable[Any], fed: set[str]) -> list[Any]:
    """The ops that must run, back to the fed tensors."""

    def before(op: Any) -> list[Any]:
        return [*(tensor.op for tensor in op.inputs if tensor.name not in fed), *op.control_inputs]

    return list(reached((end.op for end in ends), before))


def _refuse(op: Any, fed: Mapping[str, Any]) -> None:
    if op.outputs and all(tensor.name in fed for tensor in op.outputs):
        return
    # Iterators, queues and tables belong to the user's session, and reading would consume an element.
    if not op.inputs and op.type not in MAKERS and any(tensor.dtype == tf.resource for tensor in op.outputs):
        raise CannotMeasureError(
            f"The loss reads from `{op.name}` ({op.type}), and reading would change its state, so nothing was "
            "measured: pass its output in `feed_dict`."
        )


def _read(session: Any, makers: Sequence[Any]) -> dict[str, Any]:
    fetches = {op.name: value_of(op) for op in makers}
    try:
        return dict(session.run(fetches))
    except tf.errors.FailedPreconditionError as error:
        raise CannotMeasureError(
            "The variables are not initialized in the default session, so nothing was measured: run "
            "`session.run(tf.compat.v1.global_variables_initializer())` first."
        ) from error


def value_of(maker: Any) -> Any:
    """A tensor of the graph that holds the value of the variable: nothing is added to the graph."""
    made = maker.outputs[0]
    if made.dtype != tf.resource:
        return made
    for op in made.consumers():
        if op.type == "ReadVariableOp" and op._get_control_flow_context() is None and not op.control_inputs:
            return op.outputs[0]
    raise CannotMeasureError(f"`{maker.name}` is not read separately in the graph, so nothing was measured.")
