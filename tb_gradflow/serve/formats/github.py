"""Reports as workflow commands of GitHub Actions, which shows them on the lines of a pull request.

Documentation: docs.github.com, "Workflow commands for GitHub Actions". It does not list the escapes; they are those of
`@actions/core` (packages/core/src/command.ts).
"""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.record.report import Severity
from tb_gradflow.serve.formats.batch import Batch, Occurrence, occurrences, printable
from tb_gradflow.serve.terminal.text import count

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}


def render(batch: Batch) -> str:
    """A line for each finding, a line for each run that cannot be read, and the number of healthy runs."""
    return "\n".join(_lines(batch))


def _lines(batch: Batch) -> Iterator[str]:
    for name, problem in batch.unreadable.items():
        yield _command("error", {"title": "tb-gradflow"}, f"run {name}: {problem}")
    for each in occurrences(batch):
        yield _command(_COMMANDS[each.finding.severity], _properties(each), _message(each, len(batch.runs)))
    # Without a name: the runner searches the whole line for an older form of commands.
    yield f"{count(len(batch.runs), 'run')}, {sum(run.report.healthy for run in batch.runs)} healthy"


def _properties(each: Occurrence) -> dict[str, str]:
    source = each.finding.source
    place = {} if source is None else {"file": source.file, "line": str(source.line)}
    return {**place, "title": f"tb-gradflow: {each.finding.cause}"}


def _message(each: Occurrence, of: int) -> str:
    parts = [each.finding.message, *(known.text for known in each.finding.evidence)]
    if each.finding.fix:
        parts.append(f"Fix: {each.finding.fix}")
    if of > 1:
        parts.append(f"In {each.names_of_runs()}.")
    return "\n".join(parts)


def _command(name: str, properties: dict[str, str], message: str) -> str:
    said = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {said}::{_data(message)}"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
