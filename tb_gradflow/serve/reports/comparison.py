"""The differences between two runs, as users see them: an object, plain JSON, and text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tb_gradflow.analyse.report.compare import Change, Difference, Fate, FindingChange, VariableChange
from tb_gradflow.plain import clean, one_line
from tb_gradflow.record.codec import encode
from tb_gradflow.record.report import Finding, VariableReport
from tb_gradflow.serve.reports.report import Report, finding_as_json
from tb_gradflow.serve.reports.shown import Shown
from tb_gradflow.serve.runs.finite import finite
from tb_gradflow.serve.terminal.report_text import finding_lines, heading
from tb_gradflow.serve.terminal.text import Look, Role, count, table

FORMAT = 1
SHOWN = 20

TELLING_RATIO = 10.0
"""Only gradients whose norm changed by at least this factor are reported: a whole decade, which is more than the
difference between two batches.
"""

_LABELS: dict[Fate, str] = {"went": "GONE  ", "came": "NEW   ", "stayed": "STAYED"}

_ROLES: dict[str, Role] = {
    "better": "good", "worse": "error", "changed": "strong", "new": "info", "gone": "dim",
    "went": "good", "came": "error", "stayed": "dim",
}  # fmt: skip
_ORDER: tuple[Change, ...] = ("worse", "better", "changed", "new", "gone")


class Comparison(Shown):
    """A comparison of two runs.

    Attributes:
        before: The report of the first.
        now: The report of the second.
        summary: The result in one sentence.
        variables: In the order of the second run, then those that are gone.
        findings: Most severe first; within one severity, new ones, then those that are gone, then those in both.
        new: Findings that the change introduced or made worse; `--fail-on-new` fails for these.
    """

    def __init__(self, before: Report, now: Report, difference: Difference) -> None:
        self.before = before
        self.now = now
        self.variables: Sequence[VariableChange] = difference.variables
        self.findings: Sequence[FindingChange] = difference.findings
        self.new: Sequence[Finding] = tuple(change.finding for change in difference.findings if change.is_new)
        self.summary = _summary(difference)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        whole: dict[str, Any] = {
            "format": FORMAT,
            "before": {"run": self.before.run, "step": self.before.step, "healthy": self.before.healthy},
            "now": {"run": self.now.run, "step": self.now.step, "healthy": self.now.healthy},
            "summary": self.summary,
            "variables": [_variable_dict(change) for change in self.variables],
            "findings": [_finding_dict(change) for change in self.findings],
        }
        return whole

    def __repr__(self) -> str:
        before, now = self.before.run or "a step", self.now.run or "a step"
        return one_line(f"<Comparison of {before} and {now}: {self.summary}>")

    def _lines(self, look: Look) -> Iterator[str]:
        for label, report in (("before", self.before), ("now", self.now)):
            yield f"{look.paint(f'{label:<6}', 'dim')}  {heading(report.run, report.step, look)}"
        yield from (look.paint(line, _verdict_role(self)) for line in look.wrapped(self.summary))
        for change in self.findings:
            yield from _finding_change_lines(change, look)
        yield ""
        yield from _variable_lines(self.variables, look)
        yield from _guess_lines(self.variables, look)
        yield from _ratio_lines(self.variables, look)


def _summary(difference: Difference) -> str:
    changes = Counter(change.change for change in difference.variables)
    loud = [change for change in difference.findings if change.finding.severity != "info"]
    fates = Counter(change.fate for change in loud)
    grown = sum(change.is_new and change.fate == "stayed" for change in loud)
    parts = [
        (changes["better"], "variable is better", "variables are better"),
        (changes["worse"], "variable is worse", "variables are worse"),
        (fates["went"], "finding is gone", "findings are gone"),
        (fates["came"], "finding is new", "findings are new"),
        (grown, "finding is worse", "findings are worse"),
    ]
    told = [count(number, one, many) for number, one, many in parts if number]
    return f"{', '.join(told)}." if told else "No variable is better or worse, and no finding is new or gone."


def _variable_dict(change: VariableChange) -> dict[str, Any]:
    return {
        "name": change.name,
        "change": change.change,
        "match": change.match,
        "before": _side(change.before),
        "now": _side(change.now),
        "ratio": finite(change.ratio),
    }


def _side(variable: VariableReport | None) -> dict[str, Any] | None:
    if variable is None:
        return None
    norm = None if variable.gradient is None else finite(variable.gradient.norm)
    return {"name": variable.name, "status": variable.status, "norm": norm}


def _finding_dict(change: FindingChange) -> dict[str, Any]:
    finding = finite(encode(change.finding))
    return {"change": change.fate, "new": change.is_new, **finding_as_json(finding)}


def _verdict_role(comparison: Comparison) -> Role:
    if comparison.new or any(change.change == "worse" for change in comparison.variables):
        return "error"
    better = any(change.change == "better" for change in comparison.variables)
    return "good" if better or any(change.fate == "went" for change in comparison.findings) else "strong"


def _finding_change_lines(change: FindingChange, look: Look) -> Iterator[str]:
    first, *rest = finding_lines(change.finding, look)
    if change.fate == "came" and change.finding.severity != "info":
        yield from ("", f"{look.paint(_LABELS['came'], 'error')}  {first}", *rest)
        return
    grown = f", {look.paint('now worse', 'error')}" if change.is_new and change.before is not None else ""
    yield ""
    role: Role = "dim" if change.finding.severity == "info" else _ROLES[change.fate]
    yield f"{look.paint(_LABELS[change.fate], role)}  {first}{grown}"
    # A fixed finding is known to its author, and a finding that stayed is in the report: one sentence is enough.
    yield from look.prose(change.finding.message.partition(". ")[0].rstrip(".") + ".", "  ")


def _variable_lines(variables: Sequence[VariableChange], look: Look) -> Iterator[str]:
    both = sum(change.match is not None for change in variables)
    same = sum(change.change == "same" for change in variables)
    yield f"Variables: {both} in both runs, {same} with the same status"
    changed = [change for kind in _ORDER for change in variables if change.change == kind]
    shown = changed[:SHOWN]
    room = look.width - 12 - max((len(_statuses(change)) for change in shown), default=0)
    rows = [(f"{change.change:<7}", look.short(change.name, room), _statuses(change)) for change in shown]
    for (kind, name, statuses), change in zip(table(rows) if rows else [], shown, strict=True):
        yield f"  {look.paint(kind, _ROLES[change.change])}{name}{statuses}"
    if len(changed) > SHOWN:
        yield look.paint(f"  … and {len(changed) - SHOWN} more", "dim")


def _statuses(change: VariableChange) -> str:
    def word(variable: VariableReport | None) -> str:
        return "absent" if variable is None else variable.status

    return f"{word(change.before)} → {word(change.now)}"


def _guess_lines(variables: Sequence[VariableChange], look: Look) -> Iterator[str]:
    numbered = sum(change.match == "number" for change in variables)
    if numbered:
        yield ""
        yield from look.wrapped(
            f"{count(numbered, 'variable')} with different numbers in their names were matched by order."
        )
    guessed = [change for change in variables if change.match == "guess"]
    if guessed:
        yield ""
        yield "Probably renamed (same shape, similar name and position):"
    for change in guessed[:SHOWN]:
        assert change.before is not None
        yield from look.wrapped(f"{clean(change.before.name)} → {clean(change.name)}", "      ", first="  ")
    if len(guessed) > SHOWN:
        yield look.paint(f"  … and {len(guessed) - SHOWN} more", "dim")


def _ratio_lines(variables: Sequence[VariableChange], look: Look) -> Iterator[str]:
    known = [change for change in variables if change.ratio is not None]
    telling = [c for c in known if c.ratio and not 1 / TELLING_RATIO < c.ratio < TELLING_RATIO]
    if not telling:
        return
    yield ""
    yield from look.wrapped(
        f"Gradients that are at least {TELLING_RATIO:g} times larger or smaller ({len(telling)} of {len(known)}):"
    )
    telling.sort(key=lambda change: -max(change.ratio or 0, 1 / (change.ratio or 1)))
    rows = [(look.short(change.name, look.width - 36), _times(change), _norms(change)) for change in telling[:SHOWN]]
    for cells in table(rows):
        yield "  " + "".join(cells).rstrip()
    if len(telling) > SHOWN:
        yield look.paint(f"  … and {len(telling) - SHOWN} more", "dim")


def _times(change: VariableChange) -> str:
    ratio = change.ratio or 0
    return f"{ratio:.3g} times larger" if ratio >= 1 else f"{1 / ratio:.3g} times smaller"


def _norms(change: VariableChange) -> str:
    norms = (each.gradient.norm for each in (change.before, change.now) if each is not None and each.gradient)
    return " → ".join(f"{norm:.3g}" for norm in norms)
