"""Runs a program on behalf of this process: forwards signals to it, and ends this process in the same way."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

# Signals that users send to end a training, or to make it do something.
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGWINCH", "SIGCONT")


def run_to_end(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit status of the program; negative if a signal ended it."""
    if not hasattr(signal, "sigwaitinfo"):
        return _run_simply(command, environment)
    awaited = {getattr(signal, name) for name in (*_FORWARDED, "SIGCHLD") if hasattr(signal, name)}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        process = subprocess.Popen(command, env=environment, preexec_fn=_as_before(before))
        while (status := process.poll()) is None:
            told = signal.sigwaitinfo(awaited)
            # A terminal sends Ctrl-C to the program as well; another process sends its signals only to us.
            if told.si_signo != signal.SIGCHLD and told.si_code <= 0:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(told.si_signo)
        return status
    finally:
        # Whoever pressed Ctrl-C wants to see the report.
        for number in awaited & signal.sigpending():
            signal.sigwait({number})
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _as_before(mask: set[int | signal.Signals]) -> Callable[[], None]:
    parent = os.getpid()

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if sys.platform == "linux":
            _end_with(parent)

    return prepare


def _end_with(parent: int) -> None:
    """Ends the program when this process is killed, so that no training runs unattended."""
    import ctypes

    death_signal = 1  # PR_SET_PDEATHSIG
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _run_simply(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """On Windows and macOS the sender of a signal is not known, and Ctrl-C reaches both processes."""
    process = subprocess.Popen(command, env=environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    return process.wait()


def end_as(status: int) -> int:
    """The exit status for this process. If a signal ended the program, the same signal ends this process."""
    if status >= 0 or os.name == "nt":
        return status
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        # The program has already written a core dump if one is wanted.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with contextlib.suppress(OSError, ValueError):
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status
