"""Edits of code that builds a graph of TensorFlow 1: they cannot be tried on a step, which does not run that code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tb_gradflow.analyse.evidence.requests import is_by_tape
from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import Trace

_REASON = (
    "The edit has not been run: it changes code that builds the graph, which no step runs. Run the program again "
    "with it."
)


def with_reason(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings of a graph, whose edits say why they were not tried."""
    return tuple(each if each.edit is None or each.not_tried else replace(each, not_tried=_REASON) for each in findings)


def with_reason_in_graphs(trace: Trace, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The same if the gradient was requested in a graph."""
    return tuple(findings) if is_by_tape(trace) else with_reason(findings)
