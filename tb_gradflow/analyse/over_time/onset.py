"""Since when the weights of a run are not finite, according to its recorded steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tb_gradflow.record.report import Diagnosis, Finding, Status
from tb_gradflow.record.schema import VARIABLE_STATISTICS, Trace

_COLUMNS = tuple(VARIABLE_STATISTICS.index(name) for name in ("nonfinite_before", "nonfinite_after"))


@dataclass(frozen=True, slots=True)
class Onset:
    """Where it began.

    Attributes:
        first: The first recorded step of those, up to the current one, that all began with such weights.
        last: The recorded step before that one; -1 if there is none.
        recorded: Whether it happened in `last` itself.
        findings: The findings of that step about it; if it was not recorded, those of `last` about huge gradients.
    """

    first: int
    last: int
    recorded: bool
    findings: tuple[Finding, ...] = ()


def ends_with(trace: Trace, variables: npt.NDArray[np.float32]) -> tuple[bool, bool]:
    """Whether trainable weights were not finite before a step, and after it. `variables` are of that step."""
    trainable = np.array([variable.trainable for variable in trace.variables], bool)
    before, after = (variables[trainable, column] > 0 for column in _COLUMNS)
    return bool(before.any()), bool(after.any())


def onset_of(backwards: Iterable[tuple[int, bool, bool]]) -> Onset | None:
    """`backwards` are the recorded steps from the one in question back: number, and what `ends_with` says of each.
    None if the first of them began with finite weights."""
    first = None
    for step, before, after in backwards:
        if not before:
            return None if first is None else Onset(first, step, after)
        first = step
    return None if first is None else Onset(first, -1, False)


def explained_by(onset: Onset, there: Diagnosis, trace: int) -> Onset:
    """The same with the findings of that step, in a form that is valid for `trace`: ops of another trace have other
    indices."""
    plight = {variable.name: variable.status for variable in there.variables}
    told = tuple(
        replace(finding, severity="error")
        if there.trace == trace
        else replace(finding, severity="error", culprit=-1, path=(), target=-1)
        for finding in there.findings
        if (_is_birth(finding, plight) if onset.recorded else _is_growth(finding))
    )
    return replace(onset, findings=told)


@dataclass(frozen=True, slots=True)
class Measured:
    """An earlier step that was not finite either, and whose forward pass was measured.

    Attributes:
        step: Its number.
        findings: Its errors about gradients that are not finite.
    """

    step: int
    findings: tuple[Finding, ...]


def measured_in(there: Diagnosis, trace: int) -> Measured | None:
    """What that step says, in a form that is valid for `trace`; `None` if everything in it is finite."""
    found = explained_by(Onset(there.step, there.step, recorded=True), there, trace).findings
    return Measured(there.step, found) if found else None


def as_measured(known: Measured | None, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings of a step whose forward pass was not measured: in place of an error at an op that follows from its
    gradients alone, the one that was measured there in an earlier step. Another op may break at another time."""
    return findings if known is None else tuple(_as_measured(known, each) for each in findings)


def _as_measured(known: Measured, finding: Finding) -> Finding:
    here = (finding.cause, finding.op)
    for each in known.findings if finding.severity == "error" and finding.op is not None else ():
        if (each.cause, each.op) == here and not {*each.variables}.isdisjoint(finding.variables):
            return replace(
                each,
                message=f"{each.message} It was measured in step {known.step}.",
                variables=finding.variables,
                culprit=finding.culprit,
                path=finding.path,
                target=finding.target,
                began=known.step,
            )
    return finding


def is_overflow(onset: Onset) -> bool:
    """Whether no function was at fault where it began: what had grown before tells more."""
    return onset.recorded and bool(onset.findings) and all(each.cause == "not_finite" for each in onset.findings)


def _is_birth(finding: Finding, plight: Mapping[str, Status]) -> bool:
    if finding.severity != "error":
        return False
    return finding.cause == "nonfinite_update" or any(plight[name] in ("nan", "inf") for name in finding.variables)


def _is_growth(finding: Finding) -> bool:
    """Whether values were about to overflow."""
    return finding.cause == "exploding_recurrence" and finding.severity != "info"


def told_first(onset: Onset | None, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings of the step in which it began, then those of the step itself."""
    if onset is None or all(finding.cause != "nonfinite_weights" for finding in findings):
        return findings
    when = "where it started" if onset.recorded else "the last recorded step before it started"
    began = (
        replace(each, message=f"In step {onset.last}, {when}: {each.message}", began=onset.last)
        for each in onset.findings
    )
    return (*began, *findings)
