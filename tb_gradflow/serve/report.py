"""A diagnosis as users meet it: an object, plain JSON, and text for a terminal."""

from __future__ import annotations

import fnmatch
import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tb_gradflow.errors import UnhealthyGradients
from tb_gradflow.record.codec import encode
from tb_gradflow.record.report import Diagnosis, Finding, GradientReport, VariableReport

WIDTH = 100
SHOWN_VARIABLES = 20
SHOWN_NAMES = 6

_VARIABLE_KEYS = ("name", "status", "shape", "dtype", "gradient")
_FINDING_KEYS = ("cause", "severity", "variables", "op", "source", "message", "fix")


class Report:
    """What one training step says about every variable, and what is wrong.

    Attributes:
        run: What the reader calls the run; may be empty.
        step: The optimizer step it is about; -1 if none was completed.
        summary: One sentence that says how the run is.
        healthy: There is no finding of severity error or warning.
        variables: By name, in the order of the model.
        findings: Most severe first.
    """

    def __init__(self, diagnosis: Diagnosis, run: str = "") -> None:
        self._diagnosis = diagnosis
        self.run = run
        self.step = diagnosis.step
        self.summary = diagnosis.summary
        listed = {variable.name: variable for variable in diagnosis.variables if variable.listed}
        self.variables: Mapping[str, VariableReport] = MappingProxyType(listed)
        self.findings: Sequence[Finding] = diagnosis.findings
        self.healthy = not any(unhealthy(finding) for finding in diagnosis.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; the same form in every version of format 1."""
        whole = finite(encode(self._diagnosis))
        return {
            "format": whole["format"],
            "healthy": self.healthy,
            "variables": [
                {key: variable[key] for key in _VARIABLE_KEYS} for variable in whole["variables"] if variable["listed"]
            ],
            "findings": [{key: finding[key] for key in _FINDING_KEYS} for finding in whole["findings"]],
        }

    def assert_healthy(self, expected: Iterable[str] = ()) -> None:
        """Raises UnhealthyGradients, with the text of the report, if it is not healthy.

        `expected` are name patterns (fnmatch) of variables that may be as they are: a finding about nothing
        but such variables is let pass.
        """
        patterns = tuple(expected)
        if any(unhealthy(finding) and not _is_expected(finding, patterns) for finding in self.findings):
            raise UnhealthyGradients(f"\n{self}")

    def __str__(self) -> str:
        return "\n".join(_lines(self, self._diagnosis))

    def __repr__(self) -> str:
        return f"<Report of {self.run or 'a step'}, step {self.step}: {self.summary}>"


def unhealthy(finding: Finding) -> bool:
    """Whether somebody should do something about it."""
    return finding.severity != "info"


def finite(value: Any) -> Any:
    """The same JSON value with null in the place of NaN and infinities, which JSON cannot hold."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return value


def _is_expected(finding: Finding, patterns: Sequence[str]) -> bool:
    return bool(finding.variables) and all(
        any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns) for name in finding.variables
    )


def _lines(report: Report, diagnosis: Diagnosis) -> Iterator[str]:
    when = f"step {report.step}" if report.step >= 0 else "no step was completed"
    yield f"{report.run}, {when}" if report.run else when[0].upper() + when[1:]
    yield from _wrapped(diagnosis.summary, "")
    for finding in diagnosis.findings:
        yield ""
        yield from _finding_lines(finding)
    yield ""
    yield from _variable_lines(tuple(report.variables.values()), diagnosis.findings)
    for sentence in diagnosis.unverified:
        yield ""
        yield from _wrapped(f"Not known: {sentence}", "")


def _finding_lines(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity.upper()}  {finding.cause}"
    yield from _wrapped(finding.message, "  ")
    if finding.source is not None:
        yield f"  at   {finding.source.file}:{finding.source.line}"
        if finding.source.code:
            yield f"         {finding.source.code}"
    if finding.op is not None:
        yield f"  op   {finding.op.name} ({finding.op.type})"
    if finding.variables:
        yield f"  for  {_names(finding.variables)}"
    if finding.fix:
        first, *rest = finding.fix.splitlines()
        yield from _wrapped(first, "       ", first="  fix  ")
        yield from (f"       {line}" for line in rest)


def _variable_lines(variables: Sequence[VariableReport], findings: Sequence[Finding]) -> Iterator[str]:
    if not variables:
        yield "No variables."
        return
    shown = variables
    if len(variables) > SHOWN_VARIABLES:
        suffering = {name for finding in findings if unhealthy(finding) for name in finding.variables}
        shown = [each for each in variables if each.name in suffering][:SHOWN_VARIABLES]
    counts = Counter(each.status for each in variables)
    yield f"Variables: {', '.join(f'{count} {status}' for status, count in counts.most_common())}"
    width = max((len(each.name) for each in shown), default=0)
    for each in shown:
        yield f"  {each.status:<12}  {each.name:<{width}}  {_gradient_words(each.gradient)}"
    left_out = len(variables) - len(shown)
    if left_out:
        yield f"  … and {left_out} more"


def _gradient_words(gradient: GradientReport | None) -> str:
    if gradient is None:
        return "no gradient"
    words = f"gradient norm {gradient.norm:.3g}"
    if gradient.nan_count:
        words += f", {gradient.nan_count} NaN"
    if gradient.inf_count:
        words += f", {gradient.inf_count} Inf"
    return words


def _names(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def _wrapped(text: str, indent: str, first: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
