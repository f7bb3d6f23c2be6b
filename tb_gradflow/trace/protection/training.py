"""The layer between a training and its recorder. A training notifies its recorder (a callback's methods), runs its own
step while the recorder looks on, and requests what was recorded. Everything that the recorder does in such a call,
including its decisions, runs in here: an exception ends the recording, is reported once, and has no other effect.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.protection.beside import beside
from tb_gradflow.trace.protection.foreign import faults, suppressed

Report = Callable[[Exception], None]
"""Called with a fault."""

_END_OF_DATA = (StopIteration, tf.errors.OutOfRangeError)


class Protection:
    """The protection of one recorder.

    Args:
        report: Called with the first fault.
        restored: Restores the user's objects as they are without the recorder; called when the recording ends, and when
            a foreign exception, such as a KeyboardInterrupt, passes through.
        interrupted: Called after `restored` in the latter case, and when the user's step has raised: either may be the
            end of the training.

    Attributes:
        is_over: Whether nothing is recorded any more.
    """

    def __init__(
        self,
        report: Report,
        restored: Callable[[], None] = lambda: None,
        interrupted: Callable[[], None] = lambda: None,
    ) -> None:
        self.is_over = False
        self._report = report
        self._restored = restored
        self._interrupted = interrupted

    def stop(self) -> None:
        """Nothing is recorded from now on."""
        self.is_over = True
        self._restored()

    def ends(self, fault: Exception) -> None:
        """A fault ends the recording."""
        if self.is_over:
            return
        self.is_over = True
        for action in (self._restored, functools.partial(self._report, fault)):
            try:
                action()
            except faults():  # faults while handling a fault are not reported
                action()

    def attempt(self, action: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result of `action`; None if it fails, or if nothing is recorded any more."""
        if self.is_over:
            return None
        try:
            return action(*args, **kwargs)
        except faults() as fault:
            self.ends(fault)
        except BaseException:
            self._passes()
            raise
        return None

    def _passes(self) -> None:
        self._restored()
        self._may_end()

    def _may_end(self) -> None:
        with suppressed():
            self._interrupted()

    def accompany(
        self,
        plain: Callable[[], Any],
        *,
        looking_on: Callable[[], contextlib.AbstractContextManager[Any]],
        begins: Callable[[], None] = lambda: None,
        ended: Callable[[], None] = lambda: None,
        raised: Callable[[BaseException], None] = lambda _: None,
    ) -> Any:
        """Returns or raises what `plain` does, which runs a step of the user's. The recorder prepares itself before it,
        looks on, and is told that it has ended, or has raised."""
        if self.is_over:
            return plain()
        self.attempt(begins)
        try:
            results = beside(plain, looking_on, self.ends)
        except faults() as error:
            self.attempt(raised, error)
            if not isinstance(error, _END_OF_DATA):
                self._may_end()
            raise
        except BaseException:
            self._passes()
            raise
        self.attempt(ended)
        return results


def protected_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a method with which a training notifies its recorder, using the recorder's `protection`."""

    @functools.wraps(method)
    def tell(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.protection.attempt(method, self, *args, **kwargs)

    return tell


def protected_function(own: type[Exception], report: Report) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a function that a training calls, and that raises `own` for wrong arguments."""
    protection = Protection(report)

    def protect(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def tell(*args: Any, **kwargs: Any) -> None:
            if protection.is_over:
                return
            try:
                function(*args, **kwargs)
            except own:
                raise
            except faults() as fault:
                protection.ends(fault)

        return tell

    return protect
