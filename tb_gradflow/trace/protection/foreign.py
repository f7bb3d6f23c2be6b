"""Exceptions that reach the recorder's code and are not the recorder's: the program's time limit whose signal handler
raises, or what another thread has set. They go on to the program, as if they had come a moment earlier or later.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import CodeType, FrameType

_VARIABLE_ARGUMENTS = 0x04

# The packages whose code runs when the recorder does, and whose exceptions may be its faults.
_OF_RECORDER = frozenset(
    {
        "absl",
        "astunparse",
        "builtins",
        "flatbuffers",
        "gast",
        "google",
        "google_crc32c",
        "grpc",
        "h5py",
        "keras",
        "ml_dtypes",
        "namex",
        "numpy",
        "opt_einsum",
        "optree",
        "six",
        "tb_gradflow",
        "tensorboard",
        "tensorboard_data_server",
        "tensorflow",
        "termcolor",
        "tf_keras",
        "wrapt",
    }
)


def faults() -> type[Exception] | tuple[()]:
    """What an `except` clause of the recorder catches: nothing, if the exception is not the recorder's."""
    error = sys.exc_info()[1]
    return () if error is not None and is_foreign(error) else Exception


@contextlib.contextmanager
def suppressed() -> Iterator[None]:
    """Faults inside this context have no effect."""
    try:
        yield
    except faults():
        pass


def is_foreign(error: BaseException) -> bool:
    """Whether the program has interrupted the code that was running.

    A signal handler gets the frame that it has interrupted, which is its caller; so does the trace function of a
    debugger. `PyThreadState_SetAsyncExc` raises a class in code that does not know it. Of a class that Python defines,
    it cannot be told.
    """
    is_known = _package(type(error).__module__)
    entry = error.__traceback__
    while entry is not None:
        frame, entry = entry.tb_frame, entry.tb_next
        if not _package(frame.f_globals.get("__name__", "")):
            if _has_interrupted(frame):
                return True
            is_known = True  # the program's own code may raise anything
    return not is_known


def _package(module: str) -> bool:
    """Whether a module is one that the recorder consists of."""
    package = module.partition(".")[0]
    return package in _OF_RECORDER or package in sys.stdlib_module_names


def _has_interrupted(frame: FrameType) -> bool:
    return any(argument is frame.f_back for argument in _arguments(frame) if isinstance(argument, FrameType))


def _arguments(frame: FrameType) -> Iterator[object]:
    code: CodeType = frame.f_code
    named = code.co_argcount
    for name in code.co_varnames[:named]:
        yield frame.f_locals.get(name)
    if code.co_flags & _VARIABLE_ARGUMENTS:
        yield from frame.f_locals.get(code.co_varnames[named + code.co_kwonlyargcount], ())
