"""Keeps Python code from doing something outside of its process that lasts, for a while."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from tb_gradflow.trace.engine.repeated import NotRepeatable

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# https://docs.python.org/3/library/audit_events.html
_LASTING = {
    event: what
    for what, events in {
        "change files": ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"),
        "start a program": ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn"),
        "use the network": ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"),
        "change a database": ("sqlite3.connect",),
        "end a program": ("os.kill",),
        "wait for input": ("builtins.input",),
    }.items()
    for event in events
}


class _OfThread(threading.local):
    refused: list[str] | None = None


_of_thread = _OfThread()
_installed = False


@contextlib.contextmanager
def nothing_outside() -> Iterator[list[str]]:
    """While the context is open, what this thread does outside of the process raises `NotRepeatable`. Yields what was
    refused, as verbs."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_heard)  # for good: Python cannot remove one
    before, _of_thread.refused = _of_thread.refused, []
    is_kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield _of_thread.refused
    finally:
        sys.dont_write_bytecode = is_kept
        _of_thread.refused = before


def _heard(event: str, args: tuple[Any, ...], of_thread: _OfThread = _of_thread) -> None:
    refused = of_thread.refused  # while Python ends, the names of this module mean nothing any more
    if refused is None:
        return
    what = "write a file" if event == "open" and _is_written(*args) else _LASTING.get(event)
    if what is not None and not (args and _is_temporary(args[0])):
        refused.append(what)
        raise NotRepeatable(f"its Python code would {what} again")


def _is_written(path: Any, mode: Any, flags: Any) -> bool:
    return bool(flags & _WRITING) if isinstance(flags, int) else isinstance(mode, str) and not mode.startswith("r")


def _is_temporary(path: Any) -> bool:
    """Whether it is AutoGraph's, or nowhere."""
    if not isinstance(path, (str, bytes)):
        return False
    text = os.fsdecode(path)
    return text == os.devnull or (tempfile.tempdir is not None and text.startswith(os.fspath(tempfile.tempdir)))
