"""`tb-gradflow compare`: what changed between two runs, as text or as JSON."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from tb_gradflow.api import compare
from tb_gradflow.cli.runs import run_named
from tb_gradflow.cli.terminal import look
from tb_gradflow.serve.reports.comparison import Comparison

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

GOOD, FAILED = 0, 1


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "compare",
        help="print what changed between two runs",
        description="Print what changed between two runs: variables that are better or worse, and findings that "
        "are new or gone. RUN_B is read at its last recorded step, RUN_A at the recorded step "
        "closest to it. Needs no TensorFlow.",
        epilog="Exit status: 0, or 1 if --fail-on-new applies, or 2 if a log cannot be read.",
    )
    parser.add_argument("logdir", metavar="LOGDIR", help="a directory that contains both runs")
    parser.add_argument("before", metavar="RUN_A", help="the run to compare with, such as the one before a change")
    parser.add_argument("now", metavar="RUN_B", help="the run to check")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")
    parser.add_argument(
        "--fail-on-new",
        action="store_true",
        help=(
            "exit with 1 if RUN_B has an error or a warning that RUN_A does not have, or that is less severe in RUN_A"
        ),
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    comparison = compared(options.logdir, options.before, options.now)
    print(json.dumps(comparison.to_dict(), indent=2) if options.json else comparison.text(look()))
    return FAILED if options.fail_on_new and comparison.new else GOOD


def compared(logdir: str, before: str, now: str) -> Comparison:
    """Two runs of a directory, by name. Raises LogError."""
    return compare(run_named(logdir, before), run_named(logdir, now))
