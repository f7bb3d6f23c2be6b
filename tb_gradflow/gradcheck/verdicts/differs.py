"""The gradient is wrong, and nothing more is known of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_gradflow.gradcheck.comparison import Comparison, scale_of
from tb_gradflow.gradcheck.differences import Differences
from tb_gradflow.gradcheck.report import ArgumentCheck
from tb_gradflow.gradcheck.verdicts.words import count, told

# So many elements are listed.
_SHOWN = 8


def differs(comparison: Comparison, wrong: Sequence[Differences]) -> ArgumentCheck:
    argument = comparison.argument
    elements = [each for each in wrong if each.probe.index is not None]
    lines = []
    for each in elements[:3]:
        scale, index = scale_of(each.probe), each.probe.index
        assert index is not None
        spot = ", ".join(str(int(place)) for place in np.unravel_index(index, argument.point.shape))
        lines.append(f"[{spot}]: {comparison.claimed(each.probe) / scale:.4g} instead of {each.slope / scale:.4g}")
    where = f" at {'; '.join(lines)}" if lines else ""
    if comparison.by_element:
        listed = ", ".join(str(each.probe.index) for each in elements[:_SHOWN])
        more = f" and {len(elements) - _SHOWN} more" if len(elements) > _SHOWN else ""
        right = len(comparison.smooth) - len(wrong)
        told_count = f"{len(wrong)} of {count(argument.point.size, 'element')} differ"
        rest = f" The other {right} agree." if right else ""
        message = (
            f"{told_count}, at the flat indices {listed}{more}: the gradient is{where[3:]}.{rest}"
            if lines
            else told_count
        )
    else:
        message = (
            f"The gradient does not match the derivative along {len(wrong)} of {len(comparison.smooth)} "
            f"directions{where}."
        )
    if argument.replaced:
        message += f" {argument.replaced}, which finite differences do not include."
    return told(argument, "differs", message, False, comparison, comparison.error)
