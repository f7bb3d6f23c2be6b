"""`tb-gradflow report`: the findings of recorded runs, as text or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from tb_gradflow.api import open_run
from tb_gradflow.errors import LogError
from tb_gradflow.serve.report import Report
from tb_gradflow.store.directory import find_runs

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

SEVERITIES_THAT_FAIL = {"error": {"error"}, "warning": {"error", "warning"}}

GOOD, FAILED, BAD_INPUT = 0, 1, 2


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "report",
        help="print what is wrong in the runs of a log directory",
        description="Print what is wrong in the runs of a log directory. Needs no TensorFlow.",
        epilog="Exit status: 0, or 1 where --fail-on is met, or 2 if a log cannot be read.",
    )
    parser.add_argument("logdir", metavar="LOGDIR", help="a directory with one run or many")
    parser.add_argument("--run", metavar="NAME", help="only this run")
    parser.add_argument("--step", metavar="N", type=int, help="the recorded step to look at (default: the last)")
    parser.add_argument("--json", action="store_true", help='print {"runs": {NAME: report}}')
    parser.add_argument(
        "--fail-on", choices=sorted(SEVERITIES_THAT_FAIL), help="exit with 1 if there is such a finding"
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    reports: dict[str, Report] = {}
    unreadable = False
    for name, directory in _chosen(find_runs(options.logdir), options.run, options.logdir).items():
        try:
            title = options.logdir if name == "." else name
            reports[name] = open_run(title, directory).report(options.step)
        except LogError as error:
            print(f"tb-gradflow: run {name}: {error}", file=sys.stderr)
            unreadable = True
    if options.json:
        print(json.dumps({"runs": {name: report.to_dict() for name, report in reports.items()}}, indent=2))
    elif reports:
        print("\n\n\n".join(str(report) for report in reports.values()))
    if unreadable:
        return BAD_INPUT
    failing = SEVERITIES_THAT_FAIL.get(options.fail_on, set())
    found = any(finding.severity in failing for report in reports.values() for finding in report.findings)
    return FAILED if found else GOOD


def _chosen(runs: dict[str, str], name: str | None, logdir: str) -> dict[str, str]:
    if name is None:
        return runs
    if name not in runs:
        raise LogError(f"{logdir} has no run {name!r}: it has {', '.join(runs)}")
    return {name: runs[name]}
