"""`tb-gradflow report`: the findings of recorded runs, for a person, a CI server or an editor."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tb_gradflow.api import Log, page_of
from tb_gradflow.cli.runs import add_logdir, chosen, default_to_newest, opened
from tb_gradflow.cli.terminal import look, told_if_long
from tb_gradflow.errors import LogError
from tb_gradflow.plain import one_line
from tb_gradflow.serve.formats import as_json, github, junit, markdown, sarif
from tb_gradflow.serve.formats.batch import SEVERITIES_THAT_FAIL, Batch, RunReport
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.serve.runs.standing import Standing, standing_of, unknown, worst_first
from tb_gradflow.serve.terminal.standing_text import lines_of as standing_lines
from tb_gradflow.serve.terminal.text import Look, count
from tb_gradflow.store.hyperparameters import Hyperparameters, below, of_run

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

# Formats other than text; text is printed run by run.
FORMATS: dict[str, Callable[[Batch], str]] = {
    "json": as_json.render,
    "markdown": markdown.render,
    "github": github.render,
    "sarif": sarif.render,
    "junit": junit.render,
}

# For this many steps a page is ready before anyone wonders.
WORTH_TELLING = 100

# Megabytes that every mail server accepts.
MAILED = 10

# If there are more runs, not every one is printed in full.
MOST_IN_FULL = 10

# Seconds. A step of a large model, or an epoch that is recorded once, takes this long.
RECENTLY = 60

GOOD, FAILED, BAD_INPUT = 0, 1, 2


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "report",
        help="print what is wrong with the runs of a log directory",
        description="Print what is wrong with the runs of a log directory, finished or still training. Needs no "
        "TensorFlow.",
        epilog="Exit status: 0, or 1 if --fail-on applies, or 2 if a log cannot be read.",
    )
    add_logdir(parser)
    parser.add_argument("--run", metavar="NAME", help="only this run")
    parser.add_argument("--step", metavar="N", type=int, help="the recorded step to report (default: the last)")
    parser.add_argument(
        "--format",
        choices=("text", *FORMATS),
        help='output format (default: text): json is {"runs": {NAME: report}}; markdown is for an issue or a chat; '
        "github annotates the lines of a pull request; sarif is for code scanning and editors; junit is for the test "
        "summary of a CI server",
    )
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="short for `--format json`")
    parser.add_argument("--html", metavar="FILE", help="write one HTML page that shows the graph without a server")
    parser.add_argument(
        "--fail-on",
        choices=sorted(SEVERITIES_THAT_FAIL),
        help="exit with 1 on an error; with warning, on a warning too",
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """For one run the report; for several runs a table of all of them, worst first, followed by the reports."""
    default_to_newest(options)
    logs: list[Log] = []
    reports: dict[str, Report] = {}
    unreadable: dict[str, str] = {}
    with told_if_long(f"Reading {options.logdir}"):
        for name, directory in chosen(options.logdir, options.run).items():
            try:
                log = opened(options.logdir, name, directory)
                reports[name] = log.report(options.step)
                logs.append(log)
            except LogError as error:
                unreadable[name] = str(error)
    for name, problem in unreadable.items():
        named = options.logdir if name == "." else name
        print(one_line(f"tb-gradflow: run {named}: {problem}"), file=sys.stderr)
    if options.format == "text" or (options.format is None and not options.html):
        logged = below(options.logdir) if len(reports) > 1 else {}
        settings = [of_run(name, logged) for name in reports]
        print_text(logs, list(reports.values()), unreadable, options.step, settings=settings)
    failing = SEVERITIES_THAT_FAIL.get(options.fail_on, frozenset())
    if options.format in FORMATS:
        runs = [
            RunReport(name, place_of(options.logdir, name), report, log.last_recorded)
            for log, (name, report) in zip(logs, reports.items(), strict=True)
        ]
        print(FORMATS[options.format](Batch(runs, unreadable, failing or SEVERITIES_THAT_FAIL["warning"])))
    if options.html and reports:
        save(options.html, logs, list(reports.values()), options.step)
    if unreadable:
        return BAD_INPUT
    found = any(finding.severity in failing for report in reports.values() for finding in report.findings)
    return FAILED if found else GOOD


def print_text(
    logs: Sequence[Log],
    reports: Sequence[Report],
    unreadable: Mapping[str, str],
    step: int | None,
    *,
    settings: Sequence[Hyperparameters] = (),
    is_over: bool = False,
) -> None:
    """For several runs a table comes first. If there are very many, only one run for each worst finding is printed in
    full.

    `settings` are the hyperparameters of each run, or nothing if they are not known. `is_over` means that the trainings
    have ended.
    """
    order = list(range(len(reports)))
    more: dict[int, int] = {}
    if len(reports) + len(unreadable) > 1:
        standings = [
            (report.run, replace(standing_of(log.recorded, report.diagnosis), hyperparameters=values))
            for log, report, values in zip(logs, reports, settings or [{}] * len(logs), strict=True)
        ]
        known = worst_first([*standings, *((name, unknown(problem)) for name, problem in unreadable.items())])
        print("\n".join(standing_lines(known, look())))
        places = {id(standing): at for at, (_, standing) in enumerate(standings)}
        order = [places[id(standing)] for _, standing in known if id(standing) in places]
        if len(order) > MOST_IN_FULL:
            order, more = one_of_each([standing for _, standing in standings], order)
    for number, at in enumerate(order):
        print(("\n\n\n" if number or len(reports) + len(unreadable) > 1 else "") + reports[at].text(look()))
        print("" if is_over else growing(logs[at], step), end="")
        if more.get(at):
            others = count(more[at], "other run has", "other runs have")
            print(f"\n{look().paint(f'{others} the same worst finding: `--run NAME` shows one.', 'dim')}")
    print(explained([reports[at] for at in order], look()), end="")


def one_of_each(standings: Sequence[Standing], order: Sequence[int]) -> tuple[list[int], dict[int, int]]:
    """For each worst finding, the first run that has it and how many others do; healthy runs are left out."""
    first: dict[tuple[str, str], int] = {}
    more: dict[int, int] = {}
    for at in order:
        standing = standings[at]
        if standing.health in ("error", "warning"):
            shown = first.setdefault((standing.cause, standing.place), at)
            more[shown] = more.get(shown, -1) + 1
    return list(first.values()), more


def place_of(logdir: str, run: str) -> str:
    """A run's directory in a form that is valid on other machines: relative to the working directory, or its name."""
    if "://" in logdir:
        return run
    below = os.path.relpath(os.path.join(logdir, run)).replace(os.sep, "/")
    return run if PurePosixPath(below).parts[:1] == ("..",) or os.path.isabs(below) else below


def save(path: str, logs: Sequence[Log], reports: Sequence[Report], step: int | None) -> None:
    """Writes the page, and reports it on standard error if standard output is used for the result."""
    steps = sum(len(log.steps) for log in logs)
    if steps > WORTH_TELLING:
        print(f"Analysing {count(steps, 'step')} …", file=sys.stderr)
    content = page_of(logs, "\n\n\n".join(report.text_in_page for report in reports), step)
    try:
        Path(path).write_text(content, encoding="utf-8")
    except OSError as error:
        raise LogError(f"the page cannot be written to {path}: {error.strerror or error}") from error
    size = len(content.encode()) / 1e6
    hint = f"; `--run {one_line(logs[0].name)}` makes a smaller one" if size > MAILED and len(logs) > 1 else ""
    print(f"{path}: {count(len(logs), 'run')}, {size:.1f} MB, opens in any browser{hint}", file=sys.stderr)


def growing(log: Log, step: int | None) -> str:
    """A note about a log that may still be growing; empty for other logs, and if a step was given."""
    ago = time.time() - (log.last_recorded or 0)
    if step is not None or not 0 <= ago < RECENTLY:
        return ""
    steps = count(len(log.steps), "recorded step")
    return f"\n{look().paint(f'{steps}, the last one {ago:.0f} s ago: the training may still be running.', 'dim')}\n"


def explained(reports: Sequence[Report], look: Look) -> str:
    """A line that says where to read more about the findings; empty if there are none."""
    causes = [finding.cause for report in reports for finding in report.findings]
    return f"\n{look.paint(f'Explained: tb-gradflow cause {causes[0]}', 'dim')}\n" if causes else ""
