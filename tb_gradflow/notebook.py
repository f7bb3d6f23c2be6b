"""`%%gradflow`: records the trainings in a cell of a notebook, and shows the report below it."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from tb_gradflow.api import Log, open_run
from tb_gradflow.errors import LogError
from tb_gradflow.recorded import Recorded
from tb_gradflow.run_options import add_options, recorder_options
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.serve.runs.standing import standing_of, worst_first
from tb_gradflow.serve.terminal.standing_text import lines_of
from tb_gradflow.serve.terminal.text import Look
from tb_gradflow.store.directory import find_runs

LOGDIR = os.path.join("logs", "notebook")

MOST_SHOWN = 3
"""If there are more runs, only these are shown as graphs: each takes some hundred kilobytes of the notebook."""


def load(shell: Any) -> None:
    """Registers the magic in IPython's shell."""

    def gradflow(line: str, cell: str) -> None:
        """Record the trainings in this cell, and show the report below it. `%%gradflow --help` lists the options."""
        __tracebackhide__ = True  # IPython then shows the lines of the cell
        run_cell(shell, line, cell)

    shell.register_magic_function(gradflow, "cell")


def run_cell(shell: Any, line: str, cell: str) -> None:
    """Runs a cell as IPython does without the magic, and shows its trainings. Raises what the cell raises."""
    __tracebackhide__ = True
    options = _options(line)
    if options is None:
        return
    logdir = options.logdir or os.path.join(LOGDIR, time.strftime("%Y%m%d-%H%M%S"))
    # The first line is the magic's, so line numbers match those that the notebook shows. Another magic must come first.
    code = cell if cell.lstrip().startswith("%%") else f"# %%gradflow {line}\n{cell}"
    recorded = Recorded(lambda: logdir, recorder_options(options))
    recorded.start()
    try:
        with _silent_about_errors(shell), _as_the_same_cell(shell):
            result = shell.run_cell(code, store_history=False)
    finally:
        recorded.stop()
    runs = recorded.names
    error = result.error_before_exec or result.error_in_exec
    if runs or error is None:
        show(logdir, runs)
    if error is not None:
        raise error


def show(logdir: str, runs: list[str]) -> None:
    """The reports of the runs, worst first."""
    from IPython import display

    display_one: Callable[[Any], None] = display.display
    logs = _logs(logdir, runs)
    if not logs:
        print(
            "tb_gradflow: nothing was recorded. This cell trained no Keras model, and no tape in it computed a "
            "gradient."
        )
        return
    reports: dict[str, Report] = {name: log.report() for name, log in logs.items()}
    standings = worst_first((name, standing_of(log.recorded)) for name, log in logs.items())
    if len(standings) > 1:
        print("\n".join(lines_of(standings, Look())))
    for name, _ in standings[:MOST_SHOWN]:
        display_one(reports[name])
    if len(standings) > MOST_SHOWN:
        print(f"The other {len(standings) - MOST_SHOWN} runs are in TensorBoard.")
    print(f"To open them in TensorBoard: %load_ext tensorboard, then %tensorboard --logdir {shlex.quote(logdir)}")


def _logs(logdir: str, runs: list[str]) -> dict[str, Log]:
    """The logs that contain something."""
    found: dict[str, Log] = {}
    with contextlib.suppress(LogError):
        directories = find_runs(logdir) if runs else {}
        for name in runs:
            with contextlib.suppress(LogError, KeyError):
                log = open_run(name, directories[name])
                log.report()
                found[name] = log
    return found


@contextlib.contextmanager
def _silent_about_errors(shell: Any) -> Iterator[None]:
    """IPython shows an error where it leaves the cell, which is the cell with the magic."""
    shown = shell.__dict__.get("showtraceback"), shell.__dict__.get("showsyntaxerror")

    def nothing(*args: Any, **kwargs: Any) -> None:
        """Displayed later."""

    shell.__dict__["showtraceback"] = shell.__dict__["showsyntaxerror"] = nothing
    try:
        yield
    finally:
        for name, before in zip(("showtraceback", "showsyntaxerror"), shown, strict=True):
            if before is None:
                del shell.__dict__[name]
            else:
                shell.__dict__[name] = before


@contextlib.contextmanager
def _as_the_same_cell(shell: Any) -> Iterator[None]:
    """Names the code of the cell after the cell, `In[3]`; IPython has already incremented its counter."""
    compiler, number = shell.compile, next(_numbers(shell), None)
    cache = compiler.cache

    def same(code: str, count: int = 0, *rest: Any, **named: Any) -> Any:
        return cache(code, count if number is None else number, *rest, **named)

    compiler.cache = same
    try:
        yield
    finally:
        del compiler.cache


def _numbers(shell: Any) -> Iterator[int]:
    """The cells on the call stack, the innermost first."""
    known = getattr(shell.compile, "_filename_map", {})
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename in known:
            yield known[frame.f_code.co_filename]
        frame = frame.f_back


def _options(line: str) -> argparse.Namespace | None:
    parser = argparse.ArgumentParser(
        prog="%%gradflow", description="Record the trainings in this cell, and show the report below it."
    )
    parser.add_argument("--logdir", metavar="DIR", help=f"where the runs are written (default: {LOGDIR}/DATE-TIME)")
    add_options(parser)
    try:
        return parser.parse_args(shlex.split(line))
    except SystemExit:  # argparse has printed the reason; the kernel continues
        return None
