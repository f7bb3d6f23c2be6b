"""Whether a thread runs a part of a training that is already recorded, which the hooks ignore.

An eager step is recorded with patches that all threads share. So while one thread records an eager step, the hooks
ignore all others, and no eager recording begins while another thread is in a recorded training.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType

import tensorflow as tf
from tensorflow.python.eager import record

from tb_gradflow.trace.protection.faults import reported


@dataclass(frozen=True, slots=True)
class _EagerStep:
    """An eager step that is being recorded.

    Attributes:
        thread: The thread that runs it.
        code: The code that has opened its tape.
        end: Called in another thread when it is over.
    """

    thread: threading.Thread
    code: CodeType
    end: Callable[[], None]

    @property
    def is_over(self) -> bool:
        """Whether its thread has ended, or has left the code that opened the tape."""
        frame = sys._current_frames().get(self.thread.ident or 0) if self.thread.is_alive() else None
        while frame is not None and frame.f_code is not self.code:
            frame = frame.f_back
        return frame is None


class _OfThread(threading.local):
    depth = 0


_of_thread = _OfThread()
_lock = threading.Lock()
_busy = 0
_eager: _EagerStep | None = None


@contextlib.contextmanager
def left_alone() -> Iterator[None]:
    """While the context is open, the hooks ignore this thread."""
    global _busy
    is_outermost = _of_thread.depth == 0
    _of_thread.depth += 1
    if is_outermost:
        with _lock:
            _busy += 1
    try:
        yield
    finally:
        _of_thread.depth -= 1
        if is_outermost:
            with _lock:
                _busy -= 1


@contextlib.contextmanager
def left_to_author() -> Iterator[None]:
    """The same for `summary.gradients`: the step that calls it is recorded by its author."""
    for leave in leaving:
        with reported():
            leave()
    with left_alone():
        yield


leaving: list[Callable[[], None]] = []
"""What is called then, and leaves the current step of this thread alone from there on."""


def is_left_alone() -> bool:
    """Whether the hooks must ignore this thread now."""
    return is_inside() or _is_elsewhere()


def is_inside() -> bool:
    """Whether this thread runs a part of a training that is already recorded."""
    return _of_thread.depth > 0


def _is_elsewhere() -> bool:
    """Whether an eager step of another thread is being recorded. One that is over is ended first."""
    if _eager is None or _eager.thread is threading.current_thread():
        return False
    end_what_is_over()
    return _eager is not None


def end_what_is_over() -> None:
    """Ends the eager step of another thread if it is over."""
    eager = _eager
    if eager is not None and tf.executing_eagerly() and is_over_elsewhere():
        with reported(), record.stop_recording():
            eager.end()


def is_over_elsewhere() -> bool:
    """Whether the eager step that is being recorded is over, in a thread that has not noticed."""
    eager = _eager
    return eager is not None and eager.thread is not threading.current_thread() and eager.is_over


def claim(code: CodeType, end: Callable[[], None]) -> bool:
    """Whether this thread may record an eager step now, whose tape `code` opens. If so, the other threads are ignored
    until `release`; one that finds that the step is over calls `end`."""
    global _eager
    with _lock:
        if _busy or _eager is not None:
            return False
        _eager = _EagerStep(threading.current_thread(), code, end)
        return True


def release() -> None:
    """Called when the eager step is over."""
    global _eager
    with _lock:
        _eager = None


def _in_fork() -> None:
    """In a forked process, which has none of the other threads."""
    global _lock, _busy, _eager
    _lock = threading.Lock()
    _busy = int(_of_thread.depth > 0)
    _eager = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_fork)
