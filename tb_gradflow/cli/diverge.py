"""`tb-gradflow diverge`: the first difference between two runs, as text or as JSON."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from tb_gradflow.api import diverge
from tb_gradflow.cli.runs import run_named
from tb_gradflow.cli.terminal import look
from tb_gradflow.serve.reports.divergence import Divergence

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

SAME, DIFFERENT = 0, 1


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "diverge",
        help="print where two runs differ first",
        description="Print the first step, and in it the first op and direction (forward, backward, update), at which "
        "two runs differ by more than rounding, and what differs there. Compares the steps that both runs "
        "have recorded. Needs no TensorFlow.",
        epilog="Exit status: 0 if they do not differ beyond rounding, 1 if they do, 2 if a log cannot be read, or if "
        "nothing can be compared.",
    )
    parser.add_argument("logdir", metavar="LOGDIR", help="a directory that contains both runs")
    parser.add_argument("a", metavar="RUN_A", help="a run, such as the one before a change")
    parser.add_argument("b", metavar="RUN_B", help="the run to compare it with")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    divergence = diverged(options.logdir, options.a, options.b)
    print(json.dumps(divergence.to_dict(), indent=2) if options.json else divergence.text(look()))
    return DIFFERENT if divergence.differs else SAME


def diverged(logdir: str, a: str, b: str) -> Divergence:
    """Where two runs of a directory differ first. Raises LogError."""
    return diverge(run_named(logdir, a), run_named(logdir, b))
