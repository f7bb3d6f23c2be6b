"""Whose error it is that stops a step: the user's is raised as it is without the recorder, the recorder's never."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.lift_to_graph import UnliftableError


class Refused(Exception):
    """The user's own step raised, or their data while they were read.

    Attributes:
        own: What it raised.
    """

    def __init__(self, own: Exception) -> None:
        super().__init__(str(own))
        self.own = own


class StepFailed(Exception):
    """A step raised when it had drawn its batches; whose fault it is can be found out with these.

    Attributes:
        error: What it raised.
        data: An iterator over what it has drawn.
    """

    def __init__(self, error: Exception, data: Any) -> None:
        super().__init__(str(error))
        self.error = error
        self.data = data


def run_instead(
    plain: Callable[[Any], Any], iterator: Any, error: Exception, tell: Callable[[Exception, str], None]
) -> Any:
    """What the user's own training function answers, after one of ours has raised `error`. Where their step is at
    fault it fails again, with their own traceback; where it does not, or finds no more batches, we were at fault, and
    `tell` is given the error and what it may have cost."""
    if isinstance(error, (StopIteration, tf.errors.OutOfRangeError)):
        raise error
    if isinstance(error, Refused):
        raise error.own from None
    cost = " The batch of this step may not have been used."
    if isinstance(error, StepFailed):
        iterator, error = error.data, error.error
        cost = " The batch of this step may have been used twice."
    if not isinstance(error, tf.errors.OpError):  # no step ran
        cost = ""
    try:
        logs = plain(iterator)
    except (StopIteration, tf.errors.OutOfRangeError):
        tell(error, cost)
        raise
    tell(error, cost)
    return logs


def called_again(plain: Callable[..., Any], error: Exception, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What the user's own function answers for the arguments with which one of ours has raised `error`. It raises what
    is its own fault, with its own traceback."""
    if isinstance(error, Refused):
        raise error.own from None
    return plain(*args, **kwargs)


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
