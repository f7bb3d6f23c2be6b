"""Reports as GitHub Flavored Markdown, for an issue or a chat: what a person needs to see who has not the log.

Text from the user's program stands in code, in which nothing has a meaning; whatever of it is in a sentence is escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from tb_gradflow.plain import one_line
from tb_gradflow.record.report import Edit, Finding, Tried
from tb_gradflow.serve.formats.batch import Batch, Occurrence, RunReport, occurrences, printable
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.serve.terminal.patch import patch_of, tried_in_words, untried_in_words
from tb_gradflow.serve.terminal.report_text import SHOWN_NAMES, WELL, gradient_words
from tb_gradflow.version import VERSION

MOST_ROWS = 10
"""More variables, or runs, are only counted."""

# At the beginning of a line they would begin a heading or a list.
_BLOCK = re.compile(r"^(\d*)([#+=.)-])")
_SPECIAL = re.compile(r"([\\`*\[\]<>~&]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.)")
# GitHub notifies whoever is named, and links numbers to issues.
_REFERENCE = re.compile(r"(?<=[@#])(?=\w)")


def render(batch: Batch) -> str:
    """The runs, and each finding once."""
    return "\n\n".join(_blocks(batch))


def _blocks(batch: Batch) -> Iterator[str]:
    if len(batch.runs) == 1 and not batch.unreadable:
        [run] = batch.runs
        yield f"### {_title(run)}\n\n**{_prose(run.report.summary)}**"
    else:
        yield f"### {len(batch.runs) + len(batch.unreadable)} runs"
        yield from _runs(batch)
    for each in occurrences(batch):
        yield from _finding(each, len(batch.runs))
    if len(batch.runs) == 1:
        yield from _rest(batch.runs[0].report)
    yield f"tb-gradflow {VERSION}"


def _title(run: RunReport) -> str:
    return f"{_code(run.name)}, {f'step {run.report.step}' if run.report.step >= 0 else 'no step was completed'}"


def _runs(batch: Batch) -> Iterator[str]:
    rows = [(_title(run), _prose(run.report.summary)) for run in sorted(batch.runs, key=lambda run: run.report.healthy)]
    rows = [*((_code(name), _prose(problem)) for name, problem in batch.unreadable.items()), *rows]
    yield _table(("run", "state"), rows, "runs")


def _finding(each: Occurrence, of: int) -> Iterator[str]:
    finding = each.finding
    yield f"#### {finding.severity.capitalize()}: {_code(finding.cause)}"
    yield _prose(finding.message)
    if finding.source is not None:
        yield _code(f"{finding.source.file}:{finding.source.line}")
        if finding.source.code:
            yield _fenced(finding.source.code, "python")
    yield from _facts(finding)
    if of > 1:
        yield f"In {each.names_of_runs(_code)}"
    if finding.evidence:
        yield "Tried:\n\n" + "\n".join(f"- {_prose(known.text)}" for known in finding.evidence)
    if finding.fix:
        first, _, rest = finding.fix.partition("\n")
        yield f"**Fix**: {_prose(first)}"
        if rest:
            yield _fenced(rest, "python")
    if finding.edit is not None:
        yield from _edit(finding.edit, finding.tried, finding.cost, untried_in_words(finding))
    for other in finding.alternatives:
        yield "or"
        yield from _edit(other.edit, other.tried, other.cost, "")


def _facts(finding: Finding) -> Iterator[str]:
    facts = []
    if finding.op is not None:
        facts.append(f"op {_code(finding.op.name)} ({_code(finding.op.type)})")
    if finding.variables:
        more = len(finding.variables) - SHOWN_NAMES
        named = ", ".join(map(_code, finding.variables[:SHOWN_NAMES]))
        facts.append(f"for {named}" + (f" and {more} more" if more > 0 else ""))
    if facts:
        yield "; ".join(facts)


def _edit(edit: Edit, tried: Tried | None, cost: str, untried: str) -> Iterator[str]:
    yield _fenced(patch_of(edit), "diff")
    said = " ".join(filter(None, (tried_in_words(tried) if tried is not None else untried, cost)))
    if said:
        yield _prose(said)


def _rest(report: Report) -> Iterator[str]:
    """The variables that something is wrong with, what was ruled out, and what is not known."""
    counts = Counter(variable.status for variable in report.variables.values())
    if counts:
        yield f"Variables: {', '.join(f'{number} {status}' for status, number in counts.most_common())}"
    rows = [
        (_code(name), variable.status, gradient_words(variable.gradient))
        for name, variable in report.variables.items()
        if variable.status not in WELL
    ]
    if rows:
        yield _table(("variable", "status", "gradient"), rows, "variables")
    sentences = [f"Ruled out: {sentence}" for sentence in report.diagnosis.verdict.ruled_out]
    sentences += [f"Not known: {sentence}" for sentence in report.diagnosis.unverified]
    if sentences:
        yield "\n".join(f"- {_prose(sentence)}" for sentence in sentences)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], what: str) -> str:
    # In a cell, a bar ends even code.
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows[:MOST_ROWS]]
    more = f"\n\n… and {len(rows) - MOST_ROWS} more {what}" if len(rows) > MOST_ROWS else ""
    return "\n".join(f"| {line} |" for line in (" | ".join(head), " | ".join("---" for _ in head), *lines)) + more


def _prose(text: str) -> str:
    """A sentence in one line; what it has in backticks stays code."""
    parts = _line(text).strip().split("`")
    if len(parts) % 2 == 0:  # one of them belongs to a name
        parts[-2:] = ["`".join(parts[-2:])]
    return _BLOCK.sub(r"\1\\\2", "".join(_code(part) if at % 2 else _escaped(part) for at, part in enumerate(parts)))


def _escaped(text: str) -> str:
    return _REFERENCE.sub("\N{ZERO WIDTH SPACE}", _SPECIAL.sub(r"\\\1", text))


def _code(text: str) -> str:
    """Text as code within a line, whatever backticks it has."""
    text = _line(text)
    if not text.strip():
        return "(no name)" if not text else f"({len(text)} spaces)"
    ticks = _longer_than_in(text, 1)
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _fenced(text: str, language: str) -> str:
    text = printable(text).strip("\n")
    fence = _longer_than_in(text, 3)
    return f"{fence}{language}\n{text}\n{fence}"


def _longer_than_in(text: str, least: int) -> str:
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def _line(text: str) -> str:
    return printable(one_line(text))
