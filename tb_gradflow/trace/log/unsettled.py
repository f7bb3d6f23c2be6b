"""Errors of a step of which it is not known yet whether the program catches them: one may be how its loop ends."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from tb_gradflow.record.schema import Trace


@dataclass(frozen=True, slots=True)
class Unsettled:
    """What a step has raised. The error itself would keep alive what its frames hold.

    Attributes:
        trace: The structure of the step, with what it has raised.
        kind: The type of the error.
        text: Its message.
    """

    trace: Trace
    kind: type[BaseException]
    text: str

    @property
    def ends_the_program(self) -> bool:
        """When the program is at its end: whether it ends with this error, or with another one that was raised while
        this one was handled."""
        return any(type(each) is self.kind and str(each) == self.text for each in _uncaught())


def is_settled_later() -> bool:
    """Whether the end of the program shows if this thread catches an error. An interactive one shows an error, and goes
    on."""
    return threading.current_thread() is threading.main_thread() and not hasattr(sys, "ps1")


def _uncaught() -> Iterator[BaseException]:
    """What Python has shown as uncaught, what is being raised now, and what these were raised from."""
    stack = [getattr(sys, "last_value", None), sys.exc_info()[1]]
    seen = set[int]()
    while stack:
        error = stack.pop()
        if error is not None and id(error) not in seen:
            seen.add(id(error))
            yield error
            stack += [error.__cause__, error.__context__]
