"""Errors that are the user's own: nothing is asked a second time to raise them.

Once its first trace has made variables, such as an optimizer's, and has raised, TensorFlow answers the next call with
nothing: no step runs, and no error tells of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.lift_to_graph import UnliftableError

from tb_gradflow.trace.caught import Guarding


class Refused(Exception):
    """The user's own step raised while it was traced, or their data while they were read.

    Attributes:
        own: What it raised.
    """

    def __init__(self, own: Exception) -> None:
        super().__init__(str(own))
        self.own = own


def traced(plain: Any, instrumented: Callable[[], Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The user's `tf.function` for these arguments. Raises `Refused` where it raises, once the one that is
    instrumented has been traced as well, as far as it goes: the log tells why.

    First values that TensorFlow cannot compute by themselves are another matter: a call may give them all the same.
    """
    try:
        return plain.get_concrete_function(*args, **kwargs)
    except UnliftableError:
        raise
    except Exception as own:
        with contextlib.suppress(Exception):
            instrumented().get_concrete_function(*args, **kwargs)
        raise Refused(own) from own


def is_of_the_step(error: Exception, guard: Guarding) -> bool:
    """Whether an error in a guarded step is the user's own, so that the step must not be run a second time."""
    return guard.has_run and isinstance(error, tf.errors.OpError)


def called_again(plain: Any, error: Exception, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What the user's step answers after `error`: it raises what is its own fault, with its own traceback."""
    if isinstance(error, Refused):
        raise error.own from None
    return plain(*args, **kwargs)
