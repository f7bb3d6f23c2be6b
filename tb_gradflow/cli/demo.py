"""`tb-gradflow demo`: trains models that do not learn, explains why, and shows them in TensorBoard."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tb_gradflow.api import Log, open_run
from tb_gradflow.cli.terminal import look
from tb_gradflow.demo.gallery import Demo, chosen
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.store.directory import find_runs

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

LOGDIR = os.path.join("logs", "demo")

# The exit status that a shell gives a program that was ended by a signal: 128 plus the signal.
KILLED = 128
TERMINATED = KILLED + signal.SIGTERM

ADDRESS = re.compile(r"TensorBoard \S+ at (http://\S+)")


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "demo",
        help="train broken models and show in TensorBoard what is wrong with them",
        description="Train broken models and their fixed versions, print what is wrong with each, and open "
        "TensorBoard on their logs. A model takes seconds, except resnet50; all of them take about "
        "three minutes.",
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
    status = subprocess.run(training, check=False).returncode
    if status:
        return status if status > 0 else KILLED - status
    directories = find_runs(options.logdir)
    for name in (name for demo in demos for name in demo.runs(options.logdir)):
        print(f"\n{told(telling_report(open_run(name, directories[name])))}\n")
    logdir = shlex.quote(options.logdir)
    print(f"What the fix changed:     tb-gradflow compare {logdir} {' '.join(list(demos[0].runs(options.logdir))[:2])}")
    print(f"Everything in one file:   tb-gradflow report {logdir} --html demo.html")
    if options.no_serve:
        print(f"Open it in TensorBoard:   tensorboard --logdir {logdir}")
        return 0
    return serve([sys.executable, "-m", "tensorboard.main", f"--logdir={options.logdir}"])


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


def serve(command: list[str]) -> int:
    """Runs TensorBoard until it ends or is interrupted, and prints the address of the tab."""
    end_children_with_us()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            found = ADDRESS.search(line)
            if found:
                print(f"\nOpen {found[1].rstrip('/')}/#gradflow  (Ctrl-C ends)", flush=True)
            else:
                sys.stderr.write(line)
        return process.wait()
    except KeyboardInterrupt:
        print()
        return 0
    finally:
        process.terminate()
        process.communicate()
