"""`tb-gradflow demo`: trains models that do not learn, explains why, and shows them in TensorBoard."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tb_gradflow.api import Log, open_log, open_run
from tb_gradflow.cli.terminal import look
from tb_gradflow.demo.gallery import Demo, chosen
from tb_gradflow.errors import LogError
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.store.directory import find_runs

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

LOGDIR = os.path.join("logs", "demo")

# The exit status that a shell gives a program that was ended by a signal: 128 plus the signal.
KILLED = 128
TERMINATED = KILLED + signal.SIGTERM

LOOK_AGAIN = 0.5
"""Seconds between two looks for a first recorded step."""

ADDRESS = re.compile(r"TensorBoard \S+ at (http://\S+)")


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "demo",
        help="train broken models and show in TensorBoard what is wrong with them",
        description="Train broken models and their fixed versions, print what is wrong with each, and open "
        "TensorBoard on their logs as soon as the first step is recorded. A model takes seconds, except resnet50; "
        "all of them take about three minutes.",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="train only these demos (default: all)")
    parser.add_argument(
        "--logdir", metavar="DIR", default=LOGDIR, help=(f"where the runs are written (default: {LOGDIR})")
    )
    parser.add_argument("--no-serve", action="store_true", help="do not start TensorBoard")
    parser.add_argument("--list", action="store_true", help="only list the demos")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    demos = chosen(options.names)
    if options.list:
        for line in listed(demos):
            print(line)
        return 0
    end_children_with_us()
    # In a separate process, TensorFlow frees its gigabytes before TensorBoard serves for hours.
    training = [sys.executable, "-m", "tb_gradflow.demo", options.logdir, *(demo.name for demo in demos)]
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={options.logdir}"]
    with TensorBoard(command) as board:
        status = trained(training, demos[0].runs(options.logdir), None if options.no_serve else board)
        if status:
            return status if status > 0 else KILLED - status
        directories = find_runs(options.logdir)
        for name in (name for demo in demos for name in demo.runs(options.logdir)):
            print(f"\n{told(telling_report(open_run(name, directories[name])))}\n")
        logdir = shlex.quote(options.logdir)
        two = " ".join(list(demos[0].runs(options.logdir))[:2])
        print(f"What the fix changed:     tb-gradflow compare {logdir} {two}")
        print(f"Everything in one file:   tb-gradflow report {logdir} --html demo.html")
        if options.no_serve:
            print(f"Open it in TensorBoard:   tensorboard --logdir {logdir}")
            return 0
        return serve(board)


def trained(command: list[str], runs: Mapping[str, str], board: TensorBoard | None) -> int:
    """The exit status of the training. Starts TensorBoard with it, and prints its address as soon as one of `runs` has
    a step: training all of the models takes minutes."""
    began, is_told = time.time(), False
    with ended(subprocess.Popen(command)) as process:
        if board is not None:
            board.start()
        while process.poll() is None:
            if board is not None and not is_told and any(_has_step_since(began, each) for each in runs.values()):
                is_told = True
                board.tell()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_AGAIN)
        return process.returncode


def _has_step_since(began: float, directory: str) -> bool:
    """Whether a step was recorded there; older runs of the same demonstration do not count."""
    try:
        recorded = open_log(directory).last_recorded
    except LogError:
        return False
    return recorded is not None and recorded >= began


def listed(demos: Sequence[Demo]) -> Iterator[str]:
    """A table of names, causes and descriptions."""
    names, causes = max(len(demo.name) for demo in demos), max(len(demo.cause) for demo in demos)
    for demo in demos:
        yield f"{demo.name:<{names}}  {demo.cause:<{causes}}  {demo.title}"


def telling_report(log: Log) -> Report:
    """The report of the last step; or, if the weights are NaN by then, of the first step with a finding.

    If weights were NaN before a step, the report of that step can only say that the step is not the cause.
    """
    last = log.report()
    if not last.findings or last.findings[0].cause != "nonfinite_weights":
        return last
    reports = (log.report(step) for step in log.steps)
    return next((report for report in reports if not report.healthy), last)


def told(report: Report) -> str:
    """The full report, or one line if it has no findings."""
    return report.text(look()) if report.findings else f"{report.run}, step {report.step}: {report.summary}"


def end_children_with_us() -> None:
    """A process that ends here leaves no training running, and no server on its port."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))


class TensorBoard:
    """TensorBoard, once it is started. Ends with the context."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self._address = ""
        self._may_tell = False
        self._lock = threading.Lock()

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def start(self) -> None:
        """Does nothing if it was started before."""
        if self._process is None:
            quiet = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}  # as for the training
            self._process = subprocess.Popen(self._command, env=quiet, stderr=subprocess.PIPE, text=True)
            threading.Thread(target=self._pass_on, args=(self._process,), daemon=True).start()

    def tell(self) -> None:
        """Prints the address of the tab: now, or as soon as it is known."""
        with self._lock:
            self._may_tell = True
            self._print()

    def wait(self) -> int:
        """Until it ends; returns its exit status."""
        self.start()
        self.tell()
        assert self._process is not None
        return self._process.wait()

    def _pass_on(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            found = ADDRESS.search(line)
            if not found:
                sys.stderr.write(line)
                continue
            with self._lock:
                self._address = f"{found[1].rstrip('/')}/#gradflow"
                self._print()

    def _print(self) -> None:
        if self._address and self._may_tell:
            print(f"\nOpen {self._address}  (Ctrl-C ends)", flush=True)


def serve(board: TensorBoard) -> int:
    """Runs TensorBoard until it ends or is interrupted, and prints the address of the tab."""
    try:
        return board.wait()
    except KeyboardInterrupt:
        print()
        return 0


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Does not leave a process running behind."""
    try:
        yield process
    except KeyboardInterrupt:
        process.wait()  # Ctrl-C has reached it too
        raise
    finally:
        process.terminate()
        process.wait()
