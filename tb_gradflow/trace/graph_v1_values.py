"""The values that a `tf.compat.v1` graph needs before it can be run elsewhere: those of its variables, and what is fed.

Everything is read from the user's session without adding anything to their graph, and without running anything that
would move on, such as an iterator over data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.errors import SetupError
from tb_gradflow.trace.graph_v1_variables import MAKERS


class CannotMeasureError(Exception):
    """The graph cannot be run; the text says why, in a whole sentence."""


@dataclass(frozen=True, slots=True)
class Values:
    """What the copy of a graph is given.

    Attributes:
        variables: By the name of the op that makes the handle or the reference.
        fed: By the name of the tensor.
    """

    variables: dict[str, Any]
    fed: dict[str, Any]


def values_for(loss: Any, feed_dict: Mapping[Any, Any] | None) -> Values:
    """What has to be known to run `loss` outside of its session. Raises CannotMeasureError if that is not enough, or
    cannot be had; SetupError if `feed_dict` does not fit the graph."""
    fed = _fed(loss.graph, feed_dict or {})
    needed = _needed(loss, set(fed))
    missing = [op.name for op in needed if op.type == "Placeholder" and op.outputs[0].name not in fed]
    if missing:
        names = " and ".join(f"`{name}`" for name in sorted(missing))
        values = ", ".join(f"{name}: value" for name in sorted(missing))
        raise CannotMeasureError(
            f"{names} {'has' if len(missing) == 1 else 'have'} to be fed, so nothing was measured: pass "
            f"`feed_dict={{{values}}}`."
        )
    for op in needed:
        _refuse(op, fed)
    makers = [op for op in needed if op.type in MAKERS]
    return Values(_read(loss.graph, makers) if makers else {}, fed)


def _fed(graph: Any, feed_dict: Mapping[Any, Any]) -> dict[str, Any]:
    found = {}
    for key, value in feed_dict.items():
        try:
            tensor = graph.as_graph_element(key, allow_operation=False)
        except (TypeError, ValueError, KeyError) as error:
            raise SetupError(f"feed_dict: {key!r:.80} is no tensor of the loss's graph") from error
        array = np.asarray(value, tensor.dtype.as_numpy_dtype)
        if not tensor.shape.is_compatible_with(array.shape):
            raise SetupError(f"feed_dict: {tensor.name} has the shape {tensor.shape}, got {array.shape}")
        found[tensor.name] = array
    return found


def _needed(loss: Any, fed: set[str]) -> list[Any]:
    """The ops that have to run, as far back as what is fed."""
    seen: dict[str, Any] = {}
    stack = [loss.op]
    while stack:
        op = stack.pop()
        if op.name in seen:
            continue
        seen[op.name] = op
        stack.extend(tensor.op for tensor in op.inputs if tensor.name not in fed)
        stack.extend(op.control_inputs)
    return list(seen.values())


def _refuse(op: Any, fed: Mapping[str, Any]) -> None:
    if op.outputs and all(tensor.name in fed for tensor in op.outputs):
        return
    # Iterators, queues and tables live in the user's session, and looking would take something out of them.
    if not op.inputs and op.type not in MAKERS and any(tensor.dtype == tf.resource for tensor in op.outputs):
        raise CannotMeasureError(
            f"The loss reads from `{op.name}` ({op.type}), which looking would change, so nothing was measured: pass "
            "what comes out of it in `feed_dict`."
        )


def _read(graph: Any, makers: Sequence[Any]) -> dict[str, Any]:
    session = tf.compat.v1.get_default_session()
    if session is None or session.graph is not graph:
        raise CannotMeasureError(
            "There is no default session of this graph, so nothing was measured: call `explain` inside "
            "`with tf.compat.v1.Session() as session:`, after the variables are initialised."
        )
    fetches = {op.name: _fetch(op) for op in makers}
    try:
        return dict(session.run(fetches))
    except tf.errors.FailedPreconditionError as error:
        raise CannotMeasureError(
            "The variables are not initialised in the default session, so nothing was measured: run "
            "`session.run(tf.compat.v1.global_variables_initializer())` first."
        ) from error


def _fetch(maker: Any) -> Any:
    """A tensor of the graph that holds the value of the variable: nothing is added to the graph."""
    made = maker.outputs[0]
    if made.dtype != tf.resource:
        return made
    for op in made.consumers():
        if op.type == "ReadVariableOp" and op._get_control_flow_context() is None and not op.control_inputs:
            return op.outputs[0]
    raise CannotMeasureError(f"Nothing in the graph reads `{maker.name}` by itself, so nothing was measured.")
