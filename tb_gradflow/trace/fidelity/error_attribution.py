"""Decides whether the user or the recorder caused an error in a step: the user's errors are raised as without the
recorder, the recorder's never are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.lift_to_graph import UnliftableError


class Refused(Exception):
    """The user's own step raised, or the user's data while it was read.

    Attributes:
        own: The exception.
    """

    def __init__(self, own: Exception) -> None:
        super().__init__(str(own))
        self.own = own


class StepFailed(Exception):
    """A step raised after it had drawn its batches, with which the cause can be determined.

    Attributes:
        error: The exception.
        data: An iterator over the batches that it has drawn.
    """

    def __init__(self, error: Exception, data: Any) -> None:
        super().__init__(str(error))
        self.error = error
        self.data = data


def run_instead(
    plain: Callable[[Any], Any], iterator: Any, error: Exception, tell: Callable[[Exception, str], None]
) -> Any:
    """The result of the user's own training function, after one of ours has raised `error`. If the user's step is the
    cause, it fails again with the user's traceback. If it does not fail, or finds no more batches, the recorder was the
    cause, and `tell` gets the error and its possible effect.
    """
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
    """The result of the user's own function for arguments with which one of ours has raised `error`. If the user's
    function is the cause, it raises with its own traceback.
    """
    if isinstance(error, Refused):
        raise error.own from None
    return plain(*args, **kwargs)


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
