"""The differences between two runs of roughly the same model. Works on records, and reads no logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tb_gradflow.analyse.report.variable_matching import Match, Matched, match, unnumbered
from tb_gradflow.record.report import SEVERITIES, Diagnosis, Finding, Status, VariableReport

Change = Literal["better", "worse", "changed", "new", "gone", "same"]
"""What became of a variable:

better     a gradient of normal size, or one that is closer to it, where there was none
worse      the other way round
changed    another status, neither better nor worse
new, gone  there is no such variable in the other run
"""

Fate = Literal["went", "came", "stayed"]

_RANKS: dict[Status, int] = {
    "error": 0, "nan": 0, "inf": 0, "disconnected": 0, "unused": 0, "integer": 0,
    "not_measured": 1, "zero": 1, "vanishing": 1, "exploding": 1,
    "connected": 2, "frozen": 2,
}  # fmt: skip
_EXPLAINED = 2
_TINY = ("vanishing", "zero")
_FATES = ("came", "went", "stayed")


@dataclass(frozen=True, slots=True)
class VariableChange:
    """A variable of either run.

    Attributes:
        before: It in the first run; None if it is new.
        now: It in the second run; None if it is gone.
        match: How the two were found to be one; None if there is only one.
        change: What became of it.
        ratio: Norm of the gradient now over that before; None unless both are finite and above zero.
    """

    before: VariableReport | None
    now: VariableReport | None
    match: Match | None
    change: Change
    ratio: float | None

    @property
    def name(self) -> str:
        """Its name in the second run, if that has it; otherwise in the first."""
        there = self.now or self.before
        assert there is not None
        return there.name


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A finding of either run.

    Attributes:
        finding: As the second run has it, if it does.
        fate: What became of it.
        before: The same finding of the first run, if it stayed.
        is_new: Whether it deserves attention: it is new, or more severe, or affects a variable that was better off
            before; and it is more than an explanation.
    """

    finding: Finding
    fate: Fate
    before: Finding | None
    is_new: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """Two steps compared.

    Attributes:
        variables: In the order of the second run, then those that are gone.
        findings: Most severe first; of one severity those that came, went and stayed.
    """

    variables: tuple[VariableChange, ...]
    findings: tuple[FindingChange, ...]


def compare(before: Diagnosis, now: Diagnosis) -> Difference:
    """The differences in `now`."""
    left, right = _listed(before), _listed(now)
    pairs = match(left, right)
    variables = _variable_changes(left, right, pairs, before, now)
    worse = {change.name for change in variables if change.change == "worse"}
    renamed = {left[pair.before].name: right[pair.now].name for pair in pairs}
    return Difference(variables, _finding_changes(before.findings, now.findings, renamed, worse))


def _listed(diagnosis: Diagnosis) -> list[VariableReport]:
    return [variable for variable in diagnosis.variables if variable.listed]


def _explained(diagnosis: Diagnosis) -> frozenset[str]:
    """Variables that findings only explain: a change in them is neither better nor worse."""
    told = {name for finding in diagnosis.findings if finding.severity == "info" for name in finding.variables}
    blamed = {name for finding in diagnosis.findings if finding.severity != "info" for name in finding.variables}
    return frozenset(told - blamed)


def _variable_changes(
    left: Sequence[VariableReport],
    right: Sequence[VariableReport],
    pairs: Sequence[Matched],
    at_first: Diagnosis,
    at_last: Diagnosis,
) -> tuple[VariableChange, ...]:
    fine_before, fine_now = _explained(at_first), _explained(at_last)
    by_now = {pair.now: pair for pair in pairs}
    changes = []
    for place, now in enumerate(right):
        pair = by_now.get(place)
        if pair is None:
            changes.append(VariableChange(None, now, None, "new", None))
            continue
        before = left[pair.before]
        was, is_ = _rank(before, fine_before), _rank(now, fine_now)
        change: Change = "better" if is_ > was else "worse" if is_ < was else "changed"
        if _has_come_to_nothing(before, at_first) or _has_come_to_nothing(now, at_last):
            change = "changed"
        changes.append(
            VariableChange(
                before, now, pair.how, "same" if before.status == now.status else change, _ratio(before, now)
            )
        )
    matched = {pair.before for pair in pairs}
    gone = (before for place, before in enumerate(left) if place not in matched)
    return (*changes, *(VariableChange(before, None, None, "gone", None) for before in gone))


def _has_come_to_nothing(variable: VariableReport, diagnosis: Diagnosis) -> bool:
    """Whether its gradient vanishes on its path although the loss is not close to zero: even if that is explained, it
    is no better than before."""
    faded = (each for each in diagnosis.findings if (each.cause, each.severity) == ("vanishing_depth", "info"))
    return (
        variable.status in _TINY
        and diagnosis.verdict.kind != "learned"
        and any(variable.name in finding.variables for finding in faded)
    )


def _rank(variable: VariableReport, explained: frozenset[str]) -> int:
    return _EXPLAINED if variable.name in explained else _RANKS[variable.status]


def _ratio(before: VariableReport, now: VariableReport) -> float | None:
    if before.gradient is None or now.gradient is None or not _is_clean(before) or not _is_clean(now):
        return None
    if before.gradient.norm <= 0 or now.gradient.norm <= 0:
        return None
    return now.gradient.norm / before.gradient.norm


def _is_clean(variable: VariableReport) -> bool:
    gradient = variable.gradient
    return gradient is not None and gradient.nan_count == 0 == gradient.inf_count and gradient.norm < float("inf")


def _finding_changes(
    before: Sequence[Finding], now: Sequence[Finding], renamed: Mapping[str, str], worse: set[str]
) -> tuple[FindingChange, ...]:
    left = list(before)
    changes = []
    for finding in now:
        # A finding with the same culprit is more certainly the same than one that only shares a variable.
        alike = sorted(left, key=lambda other: not _blames_same(other, finding))
        same = next((other for other in alike if _is_same(other, finding, renamed)), None)
        if same is not None:
            left.remove(same)
        is_new = finding.severity != "info" and (same is None or _is_worse(same, finding, renamed, worse))
        changes.append(FindingChange(finding, "came" if same is None else "stayed", same, is_new))
    went = [FindingChange(finding, "went", None, False) for finding in left]
    return tuple(sorted((*changes, *went), key=_order))


def _order(change: FindingChange) -> tuple[int, int]:
    return SEVERITIES.index(change.finding.severity), _FATES.index(change.fate)


def _is_worse(before: Finding, now: Finding, renamed: Mapping[str, str], worse: set[str]) -> bool:
    known = {renamed.get(name, name) for name in before.variables}
    spread = any(name in worse and name not in known for name in now.variables)
    return spread or SEVERITIES.index(now.severity) < SEVERITIES.index(before.severity)


def _is_same(before: Finding, now: Finding, renamed: Mapping[str, str]) -> bool:
    shared = {renamed.get(name, name) for name in before.variables} & set(now.variables)
    return before.cause == now.cause and (bool(shared) or _blames_same(before, now) or not _says_where(before, now))


def _blames_same(before: Finding, now: Finding) -> bool:
    return before.op is not None and now.op is not None and unnumbered(before.op.name) == unnumbered(now.op.name)


def _says_where(before: Finding, now: Finding) -> bool:
    """Whether two findings of one cause can be distinguished."""
    return bool(before.variables or before.op or now.variables or now.op)
