"""Where a program is hooked: TensorFlow's and Keras's functions that a training goes through.

The hooks stay where they are once TensorFlow is loaded, and do nothing while there is no recording.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from tb_gradflow.trace.program.recording import Recording

_current: Recording | None = None
_hooked: set[str] = set()


def current() -> Recording | None:
    """What the trainings of this process belong to now; null while nothing is recorded."""
    return _current


def start(recording: Recording) -> None:
    """From now on what trains is recorded."""
    global _current
    _current = recording
    if "tb_gradflow.trace.program.eager_loops" in sys.modules:
        sys.modules["tb_gradflow.trace.program.eager_loops"].forget()
    for name in HOOKS:
        # One that is being imported is hooked when that is done: `keras` itself imports `tensorflow`.
        if name in sys.modules and not getattr(sys.modules[name].__spec__, "_initializing", False):
            hook(name)


def stop() -> None:
    """From now on nothing is recorded, and all that was can be read."""
    global _current
    recording = _current
    if recording is None:
        return
    from tb_gradflow.trace.program import eager_loops

    eager_loops.close()
    _current = None
    recording.flush()


def _leave_to_parent() -> None:
    """In a process that this one has forked: two of them would write into one log."""
    global _current
    _current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def hook(name: str) -> None:
    """A module of this name was imported."""
    if name not in _hooked:
        _hooked.add(name)
        HOOKS[name](sys.modules[name])


def _tensorflow(module: Any) -> None:
    from tb_gradflow.trace.program import eager_loops, functions

    functions.install()
    eager_loops.install(module)


def _keras(module: Any) -> None:
    from tb_gradflow.trace.program import fits

    fits.install(module)


def _own(*functions: str) -> Callable[[Any], None]:
    def install(module: Any) -> None:
        from tb_gradflow.trace.program import own_recorders

        own_recorders.install(module, functions)

    return install


HOOKS: dict[str, Callable[[Any], None]] = {
    "tensorflow": _tensorflow,
    "keras": _keras,
    "tf_keras": _keras,
    # A program that records itself is left alone for that part.
    "tb_gradflow.trace.watch": _own("Watched.__call__"),
    "tb_gradflow.trace.summaries": _own("record_gradients"),
    "tb_gradflow.trace.explain.one_step": _own("explain_model", "explain_function"),
    "tb_gradflow.trace.explain.tensor_functions": _own("TensorFunction.opened"),
}
"""By module, what to do when it is imported."""
