"""Variables whose initial value is that of another variable created in the same step."""

from __future__ import annotations

from typing import Any

from tensorflow.python.eager.lift_to_graph import UnliftableError

__all__ = ["UnliftableError", "first_trace"]


def first_trace(function: Any) -> Any:
    """The trace in which a `tf.function` created variables: the step itself, which initializes them while it runs.

    `get_concrete_function` computes initial values in advance and raises `UnliftableError` if one depends on another;
    then no variable is initialized, and later traces do not initialize them either. A call makes TensorFlow run this
    trace once instead. None if this TensorFlow keeps no such trace, or fails to run it: under XLA, and with several
    replicas.
    """
    made = [variable() for variable in getattr(function, "_created_variables", None) or ()]
    strategies = (getattr(variable, "_distribute_strategy", None) for variable in made)
    compiled = getattr(function, "_jit_compile", False)
    if compiled or any(each is not None and each.num_replicas_in_sync > 1 for each in strategies):
        return None
    return getattr(function, "_concrete_variable_creation_fn", None)
