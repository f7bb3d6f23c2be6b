"""What is said about each recorded log: everything that users can see of it, as text.

    python -m tests.recordings.expected [GROUP …]     # writes it anew, in seconds: `git diff` shows the change

These texts are not truths, but what was said when somebody last looked at them. Truths are in tests/cases, tests/seeds.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tb_gradflow.api import Log
from tb_gradflow.record.report import Alternative, Diagnosis, Edit, Finding, TermReport
from tb_gradflow.record.schema import Trace
from tests.recordings.logs import group, groups, opened

EXPECTED = Path(__file__).with_name("expected")

_HEAD = "=== "


def expected(group_name: str) -> Mapping[str, str]:
    """Name of each log of a group -> what is said about it."""
    path = EXPECTED / f"{group_name}.txt"
    parts = path.read_text(encoding="utf-8").split(f"\n{_HEAD}") if path.is_file() else []
    return {name.removeprefix(_HEAD): said for name, _, said in (part.partition("\n") for part in parts)}


def said_of(log: Log) -> str:
    """What is said about the first and the last step of a log, or about its structure if it has no step."""
    steps = sorted({log.steps[0], log.steps[-1]}) if log.steps else [None]
    session = log.recorded.index().session.id
    diagnoses = [log.report(step).diagnosis for step in steps]
    traces = {each.trace: log.recorded.trace(session, each.trace) for each in diagnoses}
    return "\n".join(line.rstrip() for each in diagnoses for line in _lines(each, traces[each.trace]))


def _lines(diagnosis: Diagnosis, trace: Trace) -> Iterator[str]:
    yield f"step {diagnosis.step}: {diagnosis.summary}"
    yield from (f"unverified: {each}" for each in diagnosis.unverified)
    for variable in diagnosis.variables:
        norm = f" {variable.gradient.norm:.3g}" if variable.gradient is not None else ""
        unlisted = "" if variable.listed else ", not listed"
        yield f"  {variable.name}: {variable.status}{norm}{unlisted}"
    for finding in diagnosis.findings:
        yield from _lines_of_finding(finding, trace)
    for term in diagnosis.terms:
        yield from _lines_of_term(term)


def _lines_of_finding(finding: Finding, trace: Trace) -> Iterator[str]:
    yield f"{finding.severity} {finding.cause}: {', '.join(finding.variables)}"
    if finding.op is not None:
        yield f"  op: {finding.op.name} ({finding.op.type}), {trace.ops[finding.culprit].name}"
    if finding.source is not None:
        yield f"  line: {finding.source.file}:{finding.source.line}: {finding.source.code}"
    if finding.path:
        yield f"  path to loss {finding.target}: {' > '.join(trace.ops[op].name for op in finding.path)}"
    yield from (f"  says: {line}" for line in finding.message.splitlines())
    yield from (f"  fix: {line}" for line in finding.fix.splitlines())
    if finding.examples is not None:
        yield f"  rows: {finding.examples}"
    if finding.edit is not None:
        yield from _lines_of_edit(finding.edit, finding.cost)
    for other in finding.alternatives:
        yield from _lines_of_alternative(other)


def _lines_of_alternative(other: Alternative) -> Iterator[str]:
    yield "  or:"
    yield from _lines_of_edit(other.edit, other.cost)


def _lines_of_edit(edit: Edit, cost: str) -> Iterator[str]:
    yield f"  edit: {edit.file}:{edit.line}-{edit.end_line}. {cost}"
    yield from (f"  - {line}" for line in edit.before.splitlines())
    yield from (f"  + {line}" for line in edit.after.splitlines())


def _lines_of_term(term: TermReport) -> Iterator[str]:
    line = f"{term.source.file}:{term.source.line}" if term.source is not None else "no line"
    value = f"{_number(term.value)}, weight {_number(term.weight)}"
    yield f"{term.kind} {term.name} of loss {term.target} ({line}): {value}"
    for each in term.variables:
        angles = ", ".join(f"{other.term} {_number(other.cosine)}" for other in each.cosine)
        broken = f", {each.broken} broken" if each.broken else ""
        yield f"  {each.variable}: {each.norm:.3g}, share {_number(each.share)}{broken}; {angles}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"


def main(wanted: Sequence[str]) -> None:
    EXPECTED.mkdir(exist_ok=True)
    for group_name in wanted or groups():
        parts = []
        for name in group(group_name):
            with tempfile.TemporaryDirectory() as directory:
                parts.append(f"{_HEAD}{name}\n{said_of(opened(f'{group_name}/{name}', Path(directory)))}")
        (EXPECTED / f"{group_name}.txt").write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
