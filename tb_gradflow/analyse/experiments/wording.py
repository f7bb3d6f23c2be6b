"""Words that the sentences about experiments share."""

from __future__ import annotations

from tb_gradflow.record.schema import Trace


def loss_called(trace: Trace, target: int) -> str:
    return "loss" if len(trace.targets) == 1 else f"loss `{trace.targets[target].name}`"


def apart(first: float, second: float) -> tuple[str, str]:
    """Two numbers, with as many digits as it takes to tell them apart; no minus before a zero."""
    shown = (f"{first + 0.0:.3g}", f"{second + 0.0:.3g}")
    for digits in range(4, 9):
        if shown[0] == shown[1] and first != second:
            shown = f"{first + 0.0:.{digits}g}", f"{second + 0.0:.{digits}g}"
    return shown
