"""Runs a program with its fixes tried, for a client that is not at a terminal: nothing is printed, and no file of the
program is changed by us.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tb_gradflow.cli.fix import passages_of
from tb_gradflow.cli.run import stem_of_script
from tb_gradflow.cli.runs import chosen, opened
from tb_gradflow.errors import LogError, SetupError
from tb_gradflow.serve.reports.fixing import fixes_of, patch

Json = dict[str, Any]

MOST_OUTPUT = 4000
"""Characters at the end of what the program prints."""

MOST_SECONDS = 7 * 24 * 3600


def run_and_try(program: str, arguments: Sequence[str], seconds: float, logdir: str | None) -> Json:
    """The findings of the runs of a program, with what came out of each edit.

    The log is kept as new runs below `logdir`, or not at all. Raises SetupError if there is no such program below the
    working directory, or if it cannot be started so, and LogError if nothing was recorded.
    """
    if not 0 < seconds <= MOST_SECONDS:
        raise SetupError(f"seconds must be more than 0 and at most {MOST_SECONDS}, got {seconds}")
    if not _is_below(program, Path.cwd()):
        raise SetupError(f"{program} is no file below {Path.cwd()}: expected a program, as in `python train.py`")
    with contextlib.ExitStack() as scratch:
        if logdir is None:
            kept, to = "", scratch.enter_context(tempfile.TemporaryDirectory(prefix="tb-gradflow-"))
        else:
            kept = f"{stem_of_script(program)}/{time.strftime('%Y%m%d-%H%M%S')}"
            to = os.path.join(logdir, kept)
        # A name like that of an option would be taken for one.
        named = os.path.join(os.curdir, program) if program.startswith("-") else program
        status, output = _run(["--try-fixes", "--logdir", to, named, *arguments], seconds)
        try:
            runs = [_told(to, name, directory, kept) for name, directory in chosen(to, None).items()]
        except LogError as error:
            raise LogError(f"nothing was recorded (exit status {status}). The program said: {output}") from error
    return {"exit_status": status, "output": output, "runs": runs}


def _is_below(program: str, directory: Path) -> bool:
    try:
        script = Path(program).resolve()
        return script.is_file() and script.is_relative_to(directory)
    except (OSError, ValueError, RuntimeError):  # no name of a file, or circular links
        return False


def _told(logdir: str, name: str, directory: str, kept: str) -> Json:
    log = opened(logdir, name, directory)
    report = log.report()
    fixes = fixes_of(report.findings)
    keys = ("cause", "severity", "variables", "source", "message", "fix", "edit", "tried")
    return {
        "run": f"{kept}/{name}" if kept else name,
        "step": report.step,
        "summary": report.summary,
        "findings": [{key: finding[key] for key in keys} for finding in report.to_dict()["findings"]],
        "patch": patch(fixes.edits, passages_of(log, report)) if fixes.edits else "",
    }


def _run(arguments: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """The exit status, None if it took too long, and the end of what was printed."""
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "tb_gradflow", "run", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Python would leave compiled modules next to those of the program.
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # such as too many arguments
        raise SetupError(f"the program cannot be started: {error}") from error
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output[-MOST_OUTPUT:]
    except subprocess.TimeoutExpired:
        # The program is in the same session, and so are processes that it has started.
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        output, _ = process.communicate()
        return None, output[-MOST_OUTPUT:]
