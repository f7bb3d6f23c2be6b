"""Runs the user's code inside a context of the recorder's, whose faults do not reach it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from tb_gradflow.trace.protection.foreign import faults

Failed = Callable[[Exception], None]
"""Called with a fault of the recorder."""


def beside(
    step: Callable[[], Any], opened: Callable[[], contextlib.AbstractContextManager[Any]], failed: Failed
) -> Any:
    """Runs `step` once, and returns or raises what it does, even if the context that `opened` returns cannot be
    entered, or raises on exit."""
    context: contextlib.AbstractContextManager[Any] | None = None
    try:
        context = opened()
        context.__enter__()
    except faults() as fault:
        context = None
        failed(fault)
    try:
        results = step()
    except BaseException as error:
        if context is not None:
            try:
                context.__exit__(type(error), error, error.__traceback__)
            except faults() as fault:
                if fault is not error:
                    failed(fault)
        raise
    if context is not None:
        try:
            context.__exit__(None, None, None)
        except faults() as fault:
            failed(fault)
    return results


class Followed:
    """A context manager of the user or of TensorFlow; the recorder is notified when it has been entered."""

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
        except faults() as fault:
            self._failed(fault)
        return result

    def __exit__(self, *error: Any) -> Any:
        return self._context.__exit__(*error)


def surely(action: Callable[..., Any], *args: Any) -> None:
    """Restores something. If that fails, it is tried once more: a half-restored state is one that the training never
    had."""
    try:
        action(*args)
    except faults():
        action(*args)
    except BaseException:  # a KeyboardInterrupt
        action(*args)
        raise
