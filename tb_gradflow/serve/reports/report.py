"""A diagnosis as users see it: an object, plain JSON, text for a terminal."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tb_gradflow.errors import LogError, UnhealthyGradients
from tb_gradflow.plain import one_line
from tb_gradflow.record.codec import encode
from tb_gradflow.record.expected import expected_by
from tb_gradflow.record.report import Diagnosis, ExampleGradients, Finding, TermReport, VariableReport
from tb_gradflow.serve.reports.page import framed, name_in_page, page
from tb_gradflow.serve.runs.began import beginnings
from tb_gradflow.serve.runs.finite import finite
from tb_gradflow.serve.runs.history import History
from tb_gradflow.serve.terminal.report_text import lines_of
from tb_gradflow.serve.terminal.text import Look, Printer

_TRIED_KEYS = ("works", "loss", "gradient_norm", "trained", "keeps")
_TRAINED_KEYS = ("steps", "loss", "without")
_VARIABLE_KEYS = ("name", "status", "shape", "dtype", "gradient")
FINDING_KEYS = (
    *("cause", "severity", "variables", "op", "source", "message", "fix", "edit", "tried", "evidence", "examples"),
)


class Report:
    """The result of one training step: the status of every variable, and what is wrong.

    Attributes:
        run: The displayed name of the run; may be empty.
        step: The optimizer step; -1 if none was completed.
        summary: The state of the run in one sentence.
        healthy: There is no finding of severity error or warning.
        variables: By name, in the order of the model.
        findings: Most severe first.
        examples: The gradient of each row of the batch; None if it was not requested.
        terms: The summands of the losses, with the gradient of each for each variable; empty if they were not measured,
            or no loss is a sum.
    """

    def __init__(
        self,
        diagnosis: Diagnosis,
        run: str = "",
        history: Callable[[], History] | None = None,
        note: str = "",
        examples: ExampleGradients | None = None,
    ) -> None:
        """`history` gives the run of the diagnosis, which `save_html` and notebooks show; `note` is appended to the
        text.
        """
        self.examples = examples
        self._note = note
        self._diagnosis = diagnosis
        self._history = history
        self.run = run
        self.step = diagnosis.step
        self.summary = diagnosis.summary
        listed = {variable.name: variable for variable in diagnosis.variables if variable.listed}
        self.variables: Mapping[str, VariableReport] = MappingProxyType(listed)
        self.findings: Sequence[Finding] = diagnosis.findings
        self.terms: Sequence[TermReport] = diagnosis.terms
        self.healthy = not any(unhealthy(finding) for finding in diagnosis.findings)

    @property
    def diagnosis(self) -> Diagnosis:
        """The diagnosis, including what only the page shows."""
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
            "findings": [finding_as_json(finding) for finding in whole["findings"]],
            "verdict": whole["verdict"],
            "terms": [term_as_json(term) for term in whole["terms"]] or None,
        }

    def assert_healthy(self, expected: Iterable[str] = ()) -> None:
        """Raises UnhealthyGradients, with the text of the report, if it is not healthy.

        `expected` are name patterns (fnmatch) of variables that are meant to get no gradient: a finding about only such
        variables is ignored.
        """
        __tracebackhide__ = True  # pytest shows the asserting line and the report, not this frame
        is_expected = expected_by(tuple(expected))
        counted = (each for each in self.findings if not (each.variables and all(map(is_expected, each.variables))))
        if any(map(unhealthy, counted)):
            raise UnhealthyGradients(f"\n{self}")

    def text(self, look: Look | None = None) -> str:
        """The report as text; without a look, as plain text of a common width."""
        look = look or Look()
        lines = [*lines_of(self._diagnosis, self.run, look, self._began())]
        return "\n".join([*lines, "", *look.wrapped(self._note)] if self._note else lines)

    @property
    def text_in_page(self) -> str:
        """The same for a page that others get."""
        return "\n".join(lines_of(self._diagnosis, name_in_page(self.run), Look(), self._began()))

    def _began(self) -> Mapping[int, str]:
        """Since when its findings hold, as far as the run shows."""
        return beginnings(self._history(), self._diagnosis) if self._history is not None else {}

    def __str__(self) -> str:
        return self.text()

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Writes one page with the viewer of TensorBoard's tab: it needs no server and no network.

        If a run has many steps, some are left out so that the page stays below 3 MB; findings are never left out.
        """
        Path(path).write_text(self._page(), encoding="utf-8")

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: the interactive graph, or the text if scripts are not trusted."""
        try:
            return framed(self._page(), self.text())
        except LogError:
            return f"<pre>{html.escape(self.text())}</pre>"

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        """The text that IPython shows in a terminal, and a notebook that shows no HTML."""
        printer.text(self.text())

    def _page(self) -> str:
        if self._history is None:
            raise LogError("this report was created without its run, so there is no graph to show")
        history = self._history()
        return page({name_in_page(history.name): history}, self.text_in_page, step=self.step)

    def __repr__(self) -> str:
        return one_line(f"<Report of {self.run or 'a step'}, step {self.step}: {self.summary}>")


def finding_as_json(finding: dict[str, Any]) -> dict[str, Any]:
    """The public form of an encoded finding."""
    public = {key: finding[key] for key in FINDING_KEYS}
    if public["tried"] is not None:
        norms = {each["variable"]: each["norm"] for each in public["tried"]["gradient_norm"]}
        public["tried"] = {key: public["tried"][key] for key in _TRIED_KEYS} | {"gradient_norm": norms}
        if (trained := public["tried"]["trained"]) is not None:
            public["tried"]["trained"] = {key: trained[key] for key in _TRAINED_KEYS}
    return public


def term_as_json(term: dict[str, Any]) -> dict[str, Any]:
    """The public form of an encoded term of a loss."""
    return {
        **{key: term[key] for key in ("name", "source", "value")},
        "variables": {
            each["variable"]: {
                "norm": each["norm"],
                "share": each["share"],
                "cosine": {other["term"]: other["cosine"] for other in each["cosine"]},
            }
            for each in term["variables"]
        },
    }


def unhealthy(finding: Finding) -> bool:
    """Whether the finding needs action."""
    return finding.severity != "info"
