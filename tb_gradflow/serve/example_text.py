"""The sentence of a report about the gradients of single rows of the batch."""

from __future__ import annotations

import math
from statistics import median

from tb_gradflow.record.report import ExampleGradients

# More than all other rows together: without that row the gradient would be less than half as long.
_MOST = 0.5

# With fewer rows, each contributes much.
_FEWEST = 4

_WRITTEN = 5


def told_of_examples(examples: ExampleGradients | None) -> str:
    """Empty if they were not requested."""
    if examples is None:
        return ""
    if examples.reason:
        return f"The gradients of single rows of the batch are not known: {examples.reason}."
    broken = [row for row, norm in enumerate(examples.norms) if not math.isfinite(norm)]
    if broken:
        more = f" and {len(broken) - _WRITTEN} more" if len(broken) > _WRITTEN else ""
        rows = ", ".join(map(str, broken[:_WRITTEN])) + more
        return f"Of the {len(examples.norms)} rows of the batch, these have a gradient that is not finite: {rows}."
    usual = median(examples.norms)
    most = max(range(len(examples.norms)), key=lambda row: (examples.shares or examples.norms)[row])
    if examples.shares and len(examples.norms) >= _FEWEST and examples.shares[most] > _MOST:
        return (
            f"Row {most} contributes {examples.shares[most]:.0%} of the gradient of the batch: its own norm is "
            f"{examples.norms[most]:.2g}, and that of the median row is {usual:.2g}. Check that row, or clip its loss: "
            "`keras.losses.Huber()`."
        )
    largest = max(range(len(examples.norms)), key=lambda row: examples.norms[row])
    return (
        f"Row {largest} has the largest gradient of the batch, with a norm of {examples.norms[largest]:.2g}; that of "
        f"the median row is {usual:.2g}."
    )
