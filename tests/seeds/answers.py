"""What TensorFlow and the report say of a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tb_gradflow.serve.reports.report import Report


@dataclass(frozen=True)
class Answer:
    """One program's answers.

    Attributes:
        tensorflow: What TensorFlow itself says, in words.
        statuses: Of each variable, in order.
        causes: Of the findings above information.
        notes: Of the others.
        text: All that the report says of causes and remedies.
        healthy: The report's word for it.
    """

    tensorflow: str
    statuses: tuple[str, ...]
    causes: tuple[str, ...]
    notes: tuple[str, ...]
    text: str
    healthy: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(told: dict[str, Any]) -> Answer:
        lists = {name: tuple(value) for name, value in told.items() if isinstance(value, list)}
        return Answer(**{**told, **lists})


def answer_of(report: Report, tensorflow: str) -> Answer:
    findings = report.findings
    told = [f"{finding.message} {_in_markdown(finding.fix)}" for finding in findings] or [report.diagnosis.summary]
    return Answer(
        tensorflow,
        tuple(each.status for each in report.variables.values()),
        tuple(each.cause for each in findings if each.severity != "info"),
        tuple(each.cause for each in findings if each.severity == "info"),
        " ".join(told),
        report.healthy,
    )


def _in_markdown(fix: str) -> str:
    """Its first line speaks, the others are lines of code."""
    said, *code = fix.split("\n")
    return "\n".join([f"*{said}*", *(f"`{line}`" for line in code if line)])


def gradients_in_words(gradients: Sequence[Any]) -> str:
    """`None`, zeros, NaN or a gradient, for each; for many of them each word once, with how often."""
    words = [_in_words(each) for each in gradients]
    if len(words) < 3:
        return ", ".join(words)
    return ", ".join(f"{word} ({words.count(word)})" for word in dict.fromkeys(words))


def _in_words(gradient: Any) -> str:
    if gradient is None:
        return "`None`"
    if not isinstance(gradient, np.ndarray | np.generic | float):
        return "a tensor"
    if not np.isfinite(gradient).all():
        return "NaN"
    return "a gradient" if np.any(gradient) else "zeros"
