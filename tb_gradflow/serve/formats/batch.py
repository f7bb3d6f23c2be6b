"""The input of every format: the reports of some runs, and the runs that could not be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tb_gradflow.plain import clean
from tb_gradflow.record.report import SEVERITIES, Finding, Severity
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.serve.terminal.text import count

# Neither XML nor UTF-8 can represent them: surrogates, and code points that are not characters.
_NO_CHARACTERS = re.compile("[\ud800-\udfff\ufffe\uffff]")

_NAMED_RUNS = 3

SEVERITIES_THAT_FAIL: Mapping[str, frozenset[Severity]] = {
    "error": frozenset(("error",)),
    "warning": frozenset(("error", "warning")),
}
"""For the value of `--fail-on`, the severities that fail."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The report of one run.

    Attributes:
        name: The displayed name of the run.
        place: Its directory as a relative path with `/`, used as the location of findings without a line of code.
        report: The report of its step.
        recorded: Seconds since the epoch when its last step was recorded; None if there is none.
    """

    name: str
    place: str
    report: Report
    recorded: float | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Everything that one command reports.

    Attributes:
        runs: The runs that could be read.
        unreadable: Name of a run -> why it could not be read.
        failing: The severities that count as a failure.
    """

    runs: Sequence[RunReport]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    failing: frozenset[Severity] = SEVERITIES_THAT_FAIL["warning"]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A finding, and the runs that have exactly this finding: in a sweep, two hundred runs may share one bug."""

    finding: Finding
    runs: tuple[RunReport, ...]

    def names_of_runs(self, written: Callable[[str], str] = str) -> str:
        """`run0, run1, run2 and 2 other runs`; `written` is how a format writes a name."""
        names = [written(run.name) for run in self.runs[:_NAMED_RUNS]]
        more = len(self.runs) - len(names)
        return ", ".join(names) + (f" and {count(more, 'other run')}" if more else "")


def occurrences(batch: Batch) -> Iterator[Occurrence]:
    """Each finding once, most severe first, then in the order of the runs."""
    found: dict[tuple[object, ...], list[tuple[Finding, RunReport]]] = {}
    for run in batch.runs:
        for finding in run.report.findings:
            key = (finding.severity, finding.cause, finding.source, finding.op, finding.message)
            found.setdefault(key, []).append((finding, run))
    for severity in SEVERITIES:
        for pairs in found.values():
            if pairs[0][0].severity == severity:
                yield Occurrence(pairs[0][0], tuple(run for _, run in pairs))


def printable(text: str) -> str:
    """Text without characters that could control a terminal, change the direction of a line, or break a file of the
    format.
    """
    return _NO_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", clean(text))
