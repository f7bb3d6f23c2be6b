"""Phrases that all verdicts share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tb_gradflow.gradcheck.comparison import Comparison
from tb_gradflow.gradcheck.differences import Differences
from tb_gradflow.gradcheck.problem import Argument
from tb_gradflow.gradcheck.report import ArgumentCheck, Verdict


def told(
    argument: Argument,
    verdict: Verdict,
    message: str,
    correct: bool,
    comparison: Comparison | None = None,
    error: float | None = None,
    *,
    known: bool = True,
) -> ArgumentCheck:
    if comparison is None:
        return ArgumentCheck(argument.name, verdict, message, correct, known)
    return ArgumentCheck(**common(comparison, error), verdict=verdict, message=message, correct=correct, known=known)


def common(comparison: Comparison, error: float | None) -> dict[str, Any]:
    return {
        "name": comparison.argument.name,
        "relative_error": error,
        "steps": comparison.step_errors,
        "best_step": comparison.best_step,
        "compared": len(comparison.smooth),
    }


def places(found: Sequence[Differences]) -> str:
    """The position in the argument, if single elements are meant; otherwise empty."""
    indices = [each.probe.index for each in found if each.probe.index is not None]
    if not indices or found[0].probe.direction.size == 1:
        return ""
    shape = found[0].probe.direction.shape
    first = ", ".join(str(int(place)) for place in np.unravel_index(indices[0], shape))
    more = f" and {len(indices) - 1} more" if len(indices) > 1 else ""
    return f" (at [{first}]{more})"


def percent(share: float) -> str:
    return f"{100 * share:.2g}%"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
