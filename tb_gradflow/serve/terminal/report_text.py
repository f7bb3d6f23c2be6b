"""A diagnosis as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from tb_gradflow.plain import clean, one_line
from tb_gradflow.record.report import Diagnosis, Edit, Finding, GradientReport, Status, VariableReport, VerdictKind
from tb_gradflow.serve.terminal.patch import patch_of, tried_in_words, untried_in_words
from tb_gradflow.serve.terminal.terms_text import term_lines
from tb_gradflow.serve.terminal.text import Look, Role

SHOWN_VARIABLES = 20
SHOWN_NAMES = 6

_NAMES_AT = 16
# In fewer columns names would be truncated beyond recognition, so the details go on the next line.
_ROOM_FOR_NAMES = 24

_DIFF_ROLES: dict[str, Role] = {"-": "error", "+": "good"}

STATUS_ROLES: dict[Status, Role] = {
    "connected": "good",
    "frozen": "dim",
    "integer": "dim",
    "not_measured": "dim",
    "zero": "warning",
    "vanishing": "warning",
    "exploding": "warning",
    "disconnected": "error",
    "unused": "error",
    "nan": "error",
    "inf": "error",
    "error": "error",
}


_NOT_THE_GRADIENT: Collection[VerdictKind] = ("rate", "labels", "batch")
"""Of these verdicts, it is of interest what was ruled out, if there is no finding."""

WELL = tuple(status for status, role in STATUS_ROLES.items() if role in ("good", "dim"))
"""The statuses of variables that nothing is wrong with."""


def lines_of(diagnosis: Diagnosis, run: str, look: Look, began: Mapping[int, str] | None = None) -> Iterator[str]:
    """The run, its summary, the findings, the variables, what was ruled out, and what is not known. `began` says since
    when a finding holds, by its index.
    """
    yield heading(run, diagnosis.step, look)
    yield from _summary_lines(diagnosis, look)
    for place, finding in enumerate(diagnosis.findings):
        yield ""
        yield from finding_lines(finding, look, (began or {}).get(place, ""))
    yield ""
    yield from _variable_lines([each for each in diagnosis.variables if each.listed], diagnosis.findings, look)
    yield from term_lines(diagnosis.terms, look)
    for sentence in diagnosis.verdict.ruled_out if _is_of_no_finding(diagnosis) else ():
        yield ""
        yield from look.prose(f"Ruled out: {sentence}")
    for sentence in diagnosis.unverified:
        yield ""
        yield from look.prose(f"Not known: {sentence}")


def heading(run: str, step: int, look: Look) -> str:
    """The run and the step."""
    when = f"step {step}" if step >= 0 else "no step was completed"
    return f"{look.paint(one_line(run), 'strong')}, {when}" if run else look.paint(when[0].upper() + when[1:], "strong")


def finding_lines(finding: Finding, look: Look, began: str = "") -> Iterator[str]:
    """A finding: what is wrong, since when, where, for which variables, what experiments say, and what to write
    instead."""
    yield f"{look.paint(finding.severity.upper(), finding.severity)}  {look.paint(finding.cause, 'strong')}"
    yield from look.prose(finding.message + began, "  ")
    if finding.source is not None:
        yield from _labelled("at", f"{finding.source.file}:{finding.source.line}", look)
        if finding.source.code:
            yield "         " + look.paint(look.short(finding.source.code, look.width - 9), "code")
    if finding.op is not None:
        yield from _labelled("op", f"{finding.op.name} ({finding.op.type})", look)
    if finding.variables:
        yield from _labelled("for", _names(finding.variables), look)
    for known in finding.evidence:
        yield from _labelled("try", known.text, look)
    if finding.fix:
        first, *rest = finding.fix.splitlines()
        lines = look.prose(first, "       ", first="  fix  ")
        yield lines[0].replace("  fix  ", f"  {look.paint('fix', 'good')}  ", 1)
        yield from lines[1:]
        # Never truncated or wrapped, so that it can be copied.
        yield from (f"       {look.paint(clean(line), 'code')}" for line in rest)
    if finding.edit is not None:
        yield from _edit_lines("edit", finding.edit, look)
        said = tried_in_words(finding.tried) if finding.tried is not None else untried_in_words(finding)
        yield from look.prose(" ".join(filter(None, (said, finding.cost))), "       ")
    for each in finding.alternatives:
        yield from _edit_lines("or", each.edit, look)
        said = tried_in_words(each.tried) if each.tried is not None else ""
        yield from look.prose(" ".join(filter(None, (said, each.cost))), "       ")


def _edit_lines(label: str, edit: Edit, look: Look) -> Iterator[str]:
    first, *rest = patch_of(edit).rstrip("\n").split("\n")
    yield f"  {look.paint(f'{label:<4}', 'good')} {clean(first).rstrip()}"
    yield from (f"       {look.paint(clean(line).rstrip(), _DIFF_ROLES.get(line[:1], 'dim'))}" for line in rest)


def _labelled(label: str, text: str, look: Look) -> list[str]:
    # A variable or a file may have a name of which nothing is to be seen.
    first, *rest = look.wrapped(text if text.strip() else "(no name)", "       ", first=f"  {label:<3}  ")
    return [f"  {look.paint(f'{label:<3}', 'dim')}  {first[7:]}", *rest]


def _summary_lines(diagnosis: Diagnosis, look: Look) -> list[str]:
    severities = [finding.severity for finding in diagnosis.findings if finding.severity != "info"]
    lines = look.wrapped(diagnosis.summary)
    worst = severities[0] if severities else "warning" if _is_of_no_finding(diagnosis) else "good"
    return [look.paint(line, worst) for line in lines]


def _is_of_no_finding(diagnosis: Diagnosis) -> bool:
    """Whether something is wrong that is not the gradient."""
    is_well = all(each.severity == "info" for each in diagnosis.findings)
    return is_well and diagnosis.verdict.kind in _NOT_THE_GRADIENT


def _variable_lines(variables: Sequence[VariableReport], findings: Sequence[Finding], look: Look) -> Iterator[str]:
    if not variables:
        yield "No variables."
        return
    shown = variables
    if len(variables) > SHOWN_VARIABLES:
        suffering = {name for finding in findings if finding.severity != "info" for name in finding.variables}
        shown = [each for each in variables if each.name in suffering][:SHOWN_VARIABLES]
    counts = Counter(each.status for each in variables)
    yield from look.wrapped(
        f"Variables: {', '.join(f'{count} {status}' for status, count in counts.most_common())}", "  ", first=""
    )
    yield from _table(shown, look)
    left_out = len(variables) - len(shown)
    if left_out:
        yield look.paint(f"  … and {left_out} more", "dim")


def _table(shown: Sequence[VariableReport], look: Look) -> Iterator[str]:
    words = [gradient_words(each.gradient) for each in shown]
    room = look.width - _NAMES_AT - 2 - max(map(len, words), default=0)
    names = [f"{each.written} = {each.name}" if each.written else each.name for each in shown]
    width = min(room, max(map(len, names), default=0))
    for each, name, said in zip(shown, names, words, strict=True):
        status = look.paint(f"{each.status:<12}", STATUS_ROLES[each.status])
        if room >= _ROOM_FOR_NAMES:
            yield f"  {status}  {look.short(name, room):<{width}}  {said}"
        else:
            yield f"  {status}  {look.short(name, look.width - _NAMES_AT)}"
            yield " " * _NAMES_AT + said


def gradient_words(gradient: GradientReport | None) -> str:
    """The size of a gradient, and how many of its elements are not finite. If none is finite, it has no size."""
    if gradient is None:
        return "no gradient"
    counts = ((gradient.nan_count, "NaN"), (gradient.inf_count, "Inf"))
    broken = [f"{count} {word}" for count, word in counts if count]
    if broken and gradient.norm == 0 and gradient.zero_fraction == 0:
        return f"{', '.join(broken)}, no finite value"
    return ", ".join((f"gradient norm {gradient.norm:.3g}", *broken))


def _names(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")
