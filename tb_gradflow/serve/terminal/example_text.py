"""The sentence of a report about the gradients of individual rows of the batch."""

from __future__ import annotations

import math
from statistics import median

from tb_gradflow.analyse.causes.strength.outlying_rows import outlying_rows
from tb_gradflow.record.report import ExampleGradients

_WRITTEN = 5


def told_of_examples(examples: ExampleGradients | None) -> str:
    """Empty if they were not requested, or if a finding is about them."""
    if examples is None or outlying_rows(examples):
        return ""
    if examples.reason:
        return f"The gradients of individual rows of the batch are not known: {examples.reason}."
    broken = [row for row, norm in enumerate(examples.norms) if not math.isfinite(norm)]
    if broken:
        more = f" and {len(broken) - _WRITTEN} more" if len(broken) > _WRITTEN else ""
        rows = ", ".join(map(str, broken[:_WRITTEN])) + more
        return f"Of the {len(examples.norms)} rows of the batch, these have a gradient that is not finite: {rows}."
    usual = median(examples.norms)
    largest = max(range(len(examples.norms)), key=lambda row: examples.norms[row])
    return (
        f"Row {largest} has the largest gradient of the batch, with a norm of {examples.norms[largest]:.2g}; that of "
        f"the median row is {usual:.2g}."
    )
