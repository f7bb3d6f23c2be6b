"""What the program raises in the middle of the recorder's code is not taken for the recorder's fault."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tb_gradflow.trace.protection.foreign import is_foreign
from tb_gradflow.trace.protection.training import Protection


class TimeLimit(Exception):
    """A program's own."""


def _raises(number: int, frame: Any) -> None:
    raise TimeoutError("enough")


def _of_any_form(*arguments: Any) -> None:
    raise ValueError("enough")


def _interrupted_by(handler: Callable[..., None]) -> None:
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("handler", [_raises, _of_any_form])
def test_what_a_signal_handler_raises_is_raised(handler: Callable[..., None]) -> None:
    faults: list[Exception] = []
    restored: list[int] = []
    protection = Protection(faults.append, lambda: restored.append(1))

    with pytest.raises((TimeoutError, ValueError), match="enough"):
        protection.attempt(lambda: _interrupted_by(handler))

    assert not faults
    assert restored
    assert not protection.is_over


def test_what_is_set_in_a_thread_is_not_a_fault() -> None:
    """As job queues do it: a class of the program, in code that does not know it. Here that code is the standard
    library's, as it would be the recorder's."""
    seen: list[bool] = []
    waiting = threading.Event()

    def work() -> None:
        try:
            ready.set()
            while not waiting.wait(0.001):
                pass
        except TimeLimit as error:
            at = error.__traceback__
            # Without the frame of this test, which is the program's.
            error.__traceback__ = at.tb_next if at is not None and at.tb_next is not None else None
            seen.append(is_foreign(error))

    ready = threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(TimeLimit))
    thread.join()

    assert seen == [True]


def test_faults_of_the_recorder_and_of_the_program_s_code_that_it_calls_are_faults() -> None:
    def asked_by_recorder() -> None:
        raise TimeLimit("in a property that the recorder reads")

    faults: list[Exception] = []
    for action in (asked_by_recorder, lambda: int("no number"), lambda: [0].index(1)):
        Protection(faults.append).attempt(action)

    assert [type(each) for each in faults] == [TimeLimit, ValueError, ValueError]
