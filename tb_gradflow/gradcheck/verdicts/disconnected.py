"""There is no gradient."""

from __future__ import annotations

from tb_gradflow.gradcheck.comparison import Comparison, scale_of
from tb_gradflow.gradcheck.report import ArgumentCheck
from tb_gradflow.gradcheck.verdicts.words import places, told


def disconnected(comparison: Comparison) -> ArgumentCheck:
    argument, found = comparison.argument, comparison.found
    smooth = [each for each in found if each.is_smooth and abs(each.slope) > 0]
    if smooth:
        steepest = max(smooth, key=lambda each: abs(each.slope))
        slope = steepest.slope / (scale_of(steepest.probe) if steepest.probe.index is not None else 1.0)
        what = f"Finite differences show that the function depends on it: its slope is {slope:.4g}{places([steepest])}."
    elif any(each.is_jump or each.varies for each in found):
        what = "The function changes with it only in jumps, and is constant in between."
    else:
        what = "The function did not change with it in any of the steps tried."
    why = f" {argument.missing}" if argument.missing else ""
    return told(argument, "disconnected", f"There is no gradient: it is None, not zero. {what}{why}", False)
