"""Hooks the functions of TensorFlow and Keras that a training calls.

The hooks stay installed once TensorFlow is loaded, and do nothing while there is no recording.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from tb_gradflow.errors import SetupError
from tb_gradflow.trace.program.recording import Recording
from tb_gradflow.trace.protection.attention import is_inside, leaving
from tb_gradflow.trace.protection.beside import surely
from tb_gradflow.trace.protection.faults import report, reported
from tb_gradflow.trace.protection.warning import warn

_current: Recording | None = None
_hooked: set[str] = set()


def current() -> Recording | None:
    """The recording to which trainings of this process belong now; None while nothing is recorded."""
    return _current


def start(recording: Recording) -> None:
    """Starts recording trainings. Another recording to which they belonged before becomes readable."""
    global _current
    if _current is not None:
        flush()
    _current = recording
    for name in HOOKS:
        # A module that is still being imported is hooked when that is done: `keras` itself imports `tensorflow`.
        if name in sys.modules and not getattr(sys.modules[name].__spec__, "_initializing", False):
            hook(name)


def flush() -> None:
    """Makes everything readable that was recorded so far."""
    if _current is None:
        return
    from tb_gradflow.trace.program import eager_loops

    if not eager_loops.is_part_of_a_step():
        eager_loops.close()
    _current.flush()


def stop(before: Recording | None = None, *, has_ended: bool = False) -> None:
    """Ends a recording, because the program `has_ended` or not: everything in it becomes readable, and further
    trainings belong to the previous recording, if there was one."""
    global _current
    recording = _current
    if recording is None:
        return
    from tb_gradflow.trace.program import eager_loops

    with reported():
        surely(eager_loops.close)
    with reported():
        surely(eager_loops.close_others, recording)
    _current = before
    with reported():
        surely(partial(recording.settle, has_ended=has_ended))
    with reported():
        surely(recording.flush)


def _leave_to_parent() -> None:
    """In a forked process: two processes would write into one log. A step that is open goes on in the parent alone."""
    global _current
    recording, _current = _current, None
    if recording is not None and recording.loops:
        from tb_gradflow.trace.program import eager_loops

        eager_loops.leave_to_parent(recording)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def hook(name: str) -> None:
    """Called when a module of this name was imported."""
    if name not in _hooked:
        _hooked.add(name)
        with reported():
            HOOKS[name](sys.modules[name])


def _tensorflow(module: Any) -> None:
    from tb_gradflow.trace.program import eager_loops, functions

    functions.install()
    eager_loops.install(module)
    leaving.extend((functions.is_recorded_by_its_author, eager_loops.is_recorded_by_its_author))
    try:
        from tb_gradflow.trace.sessions import installation
    except SetupError as lacking:
        warn(f"tb_gradflow: {lacking}")
    else:
        installation.install(_of_sessions, report)


def _of_sessions() -> Recording | None:
    """The recording to which a session of this thread belongs."""
    return None if _current is None or is_inside() else _current


def _keras(module: Any) -> None:
    from tb_gradflow.trace.program import fits

    fits.install(module)


HOOKS: dict[str, Callable[[Any], None]] = {"tensorflow": _tensorflow, "keras": _keras, "tf_keras": _keras}
"""What to do when a module is imported, by its name."""
