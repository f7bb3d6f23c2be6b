"""Reports made by hand, as the formats get them."""

from __future__ import annotations

from dataclasses import replace

from tb_gradflow.record.report import Diagnosis, Edit, Finding, GradientReport, OpReport, SourceReport, VariableReport
from tb_gradflow.serve.formats.batch import Batch, RunReport
from tb_gradflow.serve.reports.report import Report

EDIT = Edit(
    "model.py", 17, 18, "    mask = less(\n        threshold)", '    mask = "é" if x < 1 else\n        soft(threshold)'
)

# Markup, quotes, control characters, a new line, a command of GitHub's, an override of the direction of the text, half
# of a surrogate pair and a code point that is no character.
HOSTILE = "a]]><b c=\"d'&amp;%0A\x00\x1b[2J\r\n::error::x##[error]\u202etxt\ud800\uffff"


def finding(cause: str = "nondiff_comparison", *variables: str, source: bool = True) -> Finding:
    return Finding(
        cause=cause,
        severity="error",
        variables=variables,
        op=OpReport("step_filter/Less", "Less"),
        source=SourceReport("src/my model.py", 17, "mask = less(threshold)") if source else None,
        message="`less` only compares `threshold`.",
        fix="Write a soft mask:\n    mask = soft(threshold)",
        target=0,
        culprit=4,
        path=(1, 4, 6),
    )


def report(*findings: Finding, names: tuple[str, ...] = ("kernel", "threshold")) -> Report:
    hit = {name for each in findings for name in each.variables}
    variables = tuple(
        VariableReport(
            name, "disconnected" if name in hit else "connected", (2,), "float32", None if name in hit else G
        )
        for name in names
    )
    return Report(Diagnosis(1, 120, 0, "A sentence.", variables, findings, ()))


G = GradientReport(0.0123, 0.01, 0.005, 0.5, 0, 0)


def batch(*findings: Finding, name: str = "run1", names: tuple[str, ...] = ("kernel", "threshold")) -> Batch:
    return Batch((RunReport(name, f"logs/{name}", report(*findings, names=names), 1_700_000_000.0),))


def hostile() -> Batch:
    """Every text in it is one that somebody may have meant to break the format with."""
    bad = replace(
        finding("nondiff_comparison", HOSTILE),
        op=OpReport(HOSTILE, HOSTILE),
        source=SourceReport(HOSTILE, 3, HOSTILE),
        message=HOSTILE,
        fix=HOSTILE,
        edit=replace(EDIT, file=HOSTILE),
    )
    made = batch(bad, replace(bad, cause="nondiff_op", source=None), name=HOSTILE, names=(HOSTILE, "kernel"))
    return replace(made, unreadable={HOSTILE: HOSTILE})
