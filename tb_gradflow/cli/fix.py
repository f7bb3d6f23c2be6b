"""`tb-gradflow fix`: the edits of recorded runs as one patch, or written into the files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tb_gradflow.api import Log
from tb_gradflow.cli.runs import add_logdir, chosen, default_to_newest, opened
from tb_gradflow.plain import clean, one_line
from tb_gradflow.record.report import Edit
from tb_gradflow.record.schema import Passage
from tb_gradflow.serve.reports.fixing import apply, fixes_of, made_from_files, patch
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.serve.terminal.text import count

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

GOOD = 0


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "fix",
        help="print the fixes of a run as a patch, or apply them",
        description="Print the edits from the findings of a run as one unified diff for `git apply`, or write "
        "them into the files. Needs no TensorFlow.",
        epilog="Exit status: 0, or 2 if a log cannot be read, or if a file has changed since it was recorded.",
    )
    add_logdir(parser)
    parser.add_argument("--run", metavar="NAME", help="only this run")
    parser.add_argument(
        "--apply",
        action="store_true",
        help=(
            "write the edits into the files below the working directory, if these have not changed since they "
            "were recorded"
        ),
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    reports: list[Report] = []
    passages: list[Passage] = []
    made: set[Edit] = set()
    default_to_newest(options)
    for name, directory in chosen(options.logdir, options.run).items():
        log = opened(options.logdir, name, directory)
        report = log.report()
        reports.append(report)
        passages.extend(passages_of(log, report))
        if options.apply:
            made |= made_from_files(directory, report.step, Path.cwd())
    fixes = fixes_of(finding for report in reports for finding in report.findings)
    for edit in fixes.left_out:
        told = f"tb-gradflow: {edit.file}:{edit.line}: another edit changes this line too; apply it and train again"
        print(one_line(told), file=sys.stderr)
    if not fixes.edits:
        unhealthy = any(not report.healthy for report in reports)
        why = "no finding has a fix that can be written as an edit" if unhealthy else "there is nothing to fix"
        print(f"tb-gradflow: {why}", file=sys.stderr)
    elif options.apply:
        for path in apply(fixes.edits, Path.cwd(), made, passages):
            lines = [str(edit.line) for edit in fixes.edits if Path(edit.file).resolve() == path]
            done = f"{path.relative_to(Path.cwd())}: {count(len(lines), 'edit')}, from line {', '.join(lines)}"
            print(one_line(done))
    else:
        text = patch(fixes.edits, passages)
        # A person sees it as text; a program such as `git apply` gets it unchanged.
        print(clean(text) if sys.stdout.isatty() else text, end="")
    return GOOD


def passages_of(log: Log, report: Report) -> Sequence[Passage]:
    """The code around the edits of a report."""
    return log.recorded.trace(log.recorded.index().session.id, report.diagnosis.trace).passages
