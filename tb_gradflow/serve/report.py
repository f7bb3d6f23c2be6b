"""A diagnosis as users meet it: an object, plain JSON, text for a terminal."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tb_gradflow.errors import UnhealthyGradients
from tb_gradflow.record.codec import encode
from tb_gradflow.record.report import Diagnosis, Finding, VariableReport
from tb_gradflow.serve.report_text import lines_of
from tb_gradflow.serve.text import Look

_VARIABLE_KEYS = ("name", "status", "shape", "dtype", "gradient")
FINDING_KEYS = ("cause", "severity", "variables", "op", "source", "message", "fix")


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

    @property
    def diagnosis(self) -> Diagnosis:
        """All of it, with what the page shows beside."""
        return self._diagnosis

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; the same form in every version of format 1."""
        whole = finite(encode(self._diagnosis))
        return {
            "format": whole["format"],
            "healthy": self.healthy,
            "variables": [
                {key: variable[key] for key in _VARIABLE_KEYS} for variable in whole["variables"] if variable["listed"]
            ],
            "findings": [{key: finding[key] for key in FINDING_KEYS} for finding in whole["findings"]],
        }

    def assert_healthy(self, expected: Iterable[str] = ()) -> None:
        """Raises UnhealthyGradients, with the text of the report, if it is not healthy.

        `expected` are name patterns (fnmatch) of variables that may be as they are: a finding about nothing
        but such variables is let pass.
        """
        patterns = tuple(expected)
        if any(unhealthy(finding) and not _is_expected(finding, patterns) for finding in self.findings):
            raise UnhealthyGradients(f"\n{self}")

    def text(self, look: Look | None = None) -> str:
        """What a person reads; without a look, in plain text of a common width."""
        return "\n".join(lines_of(self._diagnosis, self.run, look or Look()))

    def __str__(self) -> str:
        return self.text()

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
