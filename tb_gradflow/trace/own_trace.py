"""The user's own step, where TensorFlow cannot trace it: it is not asked a second time to say so.

Once its first trace has made variables, such as an optimizer's, and has raised, TensorFlow answers the next call with
nothing: no step runs, and no error tells of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflow.python.eager.lift_to_graph import UnliftableError


class Refused(Exception):
    """The user's own step raised while it was traced.

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


def called_again(plain: Any, error: Exception, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What the user's step answers after `error`: it raises what is its own fault, with its own traceback."""
    if isinstance(error, Refused):
        raise error.own from None
    return plain(*args, **kwargs)
