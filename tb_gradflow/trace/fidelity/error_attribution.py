"""The user's `tf.function` as it is traced: whose error it is that stops that."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflow.python.eager.lift_to_graph import UnliftableError

from tb_gradflow.trace.protection.errors import Refused


def traced(plain: Any, instrumented: Callable[[], Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The user's `tf.function` for these arguments. Raises `Refused` where it raises, once the one that is
    instrumented has been traced as well, as far as it goes: the log tells why.

    It is not asked a second time to raise that. Once its first trace has made variables, such as an optimizer's, and
    has raised, TensorFlow answers the next call with nothing: no step runs, and no error tells of it. First values that
    TensorFlow cannot compute by themselves are another matter: a call may give them all the same.
    """
    try:
        return plain.get_concrete_function(*args, **kwargs)
    except UnliftableError:
        raise
    except Exception as own:
        with contextlib.suppress(Exception):
            instrumented().get_concrete_function(*args, **kwargs)
        raise Refused(own) from own
