"""Findings that call variables as the user's code does, where TensorFlow calls all of them `Variable`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import Trace


def as_written(trace: Trace, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The same findings, in whose sentences `Variable (2)` is `self.bias`. Their `variables` keep the names by which a
    report lists them."""
    names = {f"`{each.name}`": f"`{each.written}`" for each in trace.variables if each.written}
    return tuple(_said(finding, names) for finding in findings) if names else tuple(findings)


def _said(finding: Finding, names: dict[str, str]) -> Finding:
    def said(text: str) -> str:
        for name, written in names.items():
            text = text.replace(name, written)
        return text

    evidence = tuple(replace(each, text=said(each.text)) for each in finding.evidence)
    return replace(finding, message=said(finding.message), fix=said(finding.fix), evidence=evidence)
