"""`tb-gradflow report`: the findings of recorded runs, as text or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tb_gradflow.cli.runs import chosen, opened
from tb_gradflow.cli.terminal import look
from tb_gradflow.errors import LogError
from tb_gradflow.serve.report import Report
from tb_gradflow.serve.text import Look, Role, count, table

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
    """Prints each report as soon as it is known: of many runs the first is there at once."""
    reports: dict[str, Report] = {}
    unreadable = 0
    for name, directory in chosen(options.logdir, options.run).items():
        try:
            report = opened(options.logdir, name, directory).report(options.step)
        except LogError as error:
            print(f"tb-gradflow: run {name}: {error}", file=sys.stderr)
            unreadable += 1
            continue
        if not options.json:
            print(("\n\n\n" if reports else "") + report.text(look()))
        reports[name] = report
    if options.json:
        print(json.dumps({"runs": {name: report.to_dict() for name, report in reports.items()}}, indent=2))
    elif len(reports) > 1:
        print(f"\n\n{in_all(list(reports.values()), look())}")
    if unreadable:
        return BAD_INPUT
    failing = SEVERITIES_THAT_FAIL.get(options.fail_on, set())
    found = any(finding.severity in failing for report in reports.values() for finding in report.findings)
    return FAILED if found else GOOD


def in_all(reports: Sequence[Report], look: Look) -> str:
    """What several reports come to, a line for each."""
    title = f"{count(len(reports), 'run')}, {sum(report.healthy for report in reports)} healthy"
    rows = table([(_mark(report), look.short(report.run, look.width // 2), report.summary) for report in reports])
    lines = [look.paint(title, "strong")]
    for (mark, run, _), report in zip(rows, reports, strict=True):
        indent = " " * (2 + len(mark) + len(run))
        first, *rest = look.prose(report.summary, indent, first=f"  {mark}{run}")
        role: Role = "good" if report.healthy else "error" if mark.startswith("error") else "warning"
        lines += [f"  {look.paint(mark, role)}{first[2 + len(mark) :]}", *rest]
    return "\n".join(lines)


def _mark(report: Report) -> str:
    return "healthy" if report.healthy else report.findings[0].severity
