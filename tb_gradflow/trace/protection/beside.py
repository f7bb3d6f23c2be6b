"""Runs the user's code inside a context of the recorder's, whose faults do not reach it."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable
from typing import Any

Failed = Callable[[Exception], None]
"""Called with a fault of the recorder."""


def beside(
    step: Callable[[], Any], opened: Callable[[], contextlib.AbstractContextManager[Any]], failed: Failed
) -> Any:
    """What `step` returns or raises. It runs once, whether the context that `opened` returns can be entered or not, and
    whatever leaving it raises."""
    context: contextlib.AbstractContextManager[Any] | None = None
    try:
        context = opened()
        context.__enter__()
    except Exception as fault:
        context = None
        failed(fault)
    try:
        results = step()
    except BaseException as error:
        if context is not None:
            try:
                context.__exit__(type(error), error, error.__traceback__)
            except Exception as fault:
                if fault is not error:
                    failed(fault)
        raise
    if context is not None:
        try:
            context.__exit__(None, None, None)
        except Exception as fault:
            failed(fault)
    return results


class Beside(abc.ABC):
    """A function of the user's that the recorder calls in a context of its own, until that has ended well once."""

    function: Any
    has_run: bool
    _failed: Failed

    def __call__(self, *args: Any) -> Any:
        if self.has_run:
            return self.function(*args)
        return beside(lambda: self.function(*args), self._as_then, self._failed)

    @abc.abstractmethod
    def _as_then(self) -> contextlib.AbstractContextManager[None]:
        """The context."""


class Followed:
    """A context manager of somebody else's; the recorder hears when it was entered."""

    def __init__(
        self, context: contextlib.AbstractContextManager[Any], entered: Callable[[], None], failed: Failed
    ) -> None:
        self._context = context
        self._entered = entered
        self._failed = failed

    def __enter__(self) -> Any:
        result = self._context.__enter__()
        try:
            self._entered()
        except Exception as fault:
            self._failed(fault)
        return result

    def __exit__(self, *error: Any) -> Any:
        return self._context.__exit__(*error)


def surely(action: Callable[..., Any], *args: Any) -> None:
    """Puts something back. What fails is tried once more: half of a state is none that the training ever had."""
    try:
        action(*args)
    except Exception:
        action(*args)
    except BaseException:  # a KeyboardInterrupt
        action(*args)
        raise
