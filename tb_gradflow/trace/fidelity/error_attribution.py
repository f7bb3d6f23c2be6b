"""The user's `tf.function` as it is traced: whose error it is that stops that."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflow.python.eager.lift_to_graph import UnliftableError

from tb_gradflow.trace.protection.errors import Refused


def traced(plain: Any, instrumented: Callable[[], Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The user's `tf.function` for these arguments. Raises `Refused` if it raises, after the instrumented function has
    been traced too, as far as possible, so that the log shows why.

    It is not called again to raise the same error. If its first trace has created variables, such as an optimizer's,
    and then raised, TensorFlow does nothing in the next call: no step runs, and no error is raised. The exception is
    initial values that TensorFlow cannot compute separately: a call may still initialize them.
    """
    try:
        return plain.get_concrete_function(*args, **kwargs)
    except UnliftableError:
        raise
    except Exception as own:
        with contextlib.suppress(Exception):
            instrumented().get_concrete_function(*args, **kwargs)
        raise Refused(own) from own
