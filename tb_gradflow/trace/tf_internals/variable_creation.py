"""Variables whose first value is that of another variable which the same step makes."""

from __future__ import annotations

from typing import Any

from tensorflow.python.eager.lift_to_graph import UnliftableError

__all__ = ["UnliftableError", "first_trace"]


def first_trace(function: Any) -> Any:
    """The trace in which a `tf.function` has made variables: the step itself, which gives them their values on the way.

    `get_concrete_function` computes first values beforehand and raises `UnliftableError` where one needs another; then
    none of the variables has a value, and later traces give them none. A call has TensorFlow run this trace once
    instead. None where this TensorFlow keeps no such trace, or fails at it: for XLA, and for several replicas.
    """
    made = [variable() for variable in getattr(function, "_created_variables", None) or ()]
    strategies = (getattr(variable, "_distribute_strategy", None) for variable in made)
    compiled = getattr(function, "_jit_compile", False)
    if compiled or any(each is not None and each.num_replicas_in_sync > 1 for each in strategies):
        return None
    return getattr(function, "_concrete_variable_creation_fn", None)
