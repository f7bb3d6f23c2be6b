"""The report at the end of `tb-gradflow run`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from tb_gradflow.api import Log, open_run
from tb_gradflow.cli.report import print_text
from tb_gradflow.errors import LogError
from tb_gradflow.plain import one_line
from tb_gradflow.serve.formats.batch import SEVERITIES_THAT_FAIL
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.serve.terminal.text import count
from tb_gradflow.store.directory import find_runs


def report_on(logdir: str, names: Sequence[str], fail_on: str | None) -> bool:
    """Prints the report of these runs. Returns whether it has a finding of that severity."""
    logs, unreadable = _opened(logdir, names)
    reports: list[Report] = []
    for log in list(logs):
        try:
            reports.append(log.report())
        except LogError as error:
            logs.remove(log)
            unreadable[log.name] = str(error)
    print()
    for name, problem in unreadable.items():
        print(one_line(f"tb-gradflow: run {name}: {problem}"))
    if reports:
        print_text(logs, reports, unreadable, None, is_over=True)
        where = shlex.quote(logdir)
        print(f"\n{count(len(reports), 'run')} recorded. Look at the graph: tb-gradflow view {where}")
        print(f"In TensorBoard: tensorboard --logdir {where}")
        if any(finding.edit is not None for report in reports for finding in report.findings):
            print(f"Write the edits into your files: tb-gradflow fix {where} --apply")
    failing = SEVERITIES_THAT_FAIL[fail_on] if fail_on else frozenset()
    return any(finding.severity in failing for report in reports for finding in report.findings)


def _opened(logdir: str, names: Sequence[str]) -> tuple[list[Log], dict[str, str]]:
    """The logs of these runs, and the reason for each run that cannot be read."""
    try:
        directories: Mapping[str, str] = find_runs(logdir)
    except LogError:
        directories = {}
    logs: list[Log] = []
    unreadable: dict[str, str] = {}
    for name in names:
        if name not in directories:
            unreadable[name] = "no step was recorded: a warning above says why, or the training ended too early"
            continue
        try:
            logs.append(open_run(name, directories[name]))
        except LogError as error:
            unreadable[name] = str(error)
    return logs, unreadable
