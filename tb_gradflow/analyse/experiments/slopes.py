"""How the loss reacted to small moves along a gradient, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_gradflow.analyse.experiments.wording import loss_called
from tb_gradflow.record.experiments import Slope
from tb_gradflow.record.report import Evidence, Finding
from tb_gradflow.record.schema import Trace

_SAME = 0.1
"""A prediction and what came out are the same if they differ by a smaller part: a step of a hundredth has
curvature."""


def of_slopes(trace: Trace, known: Sequence[Slope], finding: Finding) -> Iterator[Evidence]:
    """Those of the first variable of a finding that was moved along its gradient."""
    for each in known:
        name = trace.variables[each.variable].name
        if each.along == "gradient" and each.target == finding.target and name in finding.variables:
            loss = loss_called(trace, each.target)
            is_scalar = not trace.variables[each.variable].shape
            moving = f"`{name}`" if is_scalar else f"the elements of `{name}`"
            text = f"Moving {moving} along the gradient, by up to {each.amount:.3g}, {_outcome(each, loss)}."
            yield Evidence("slope", name, "loss", each.change, each.predicted / each.amount, text)
            return


def _outcome(known: Slope, loss: str) -> str:
    predicted = f"{abs(known.predicted):.2g}"
    if abs(known.change) <= known.noise:
        before = f"{known.before + 0.0:.3g}"
        return f"changes the {loss}, {before}, by less than its rounding; the gradient predicts {predicted}"
    if abs(known.change - known.predicted) <= known.noise + _SAME * abs(known.predicted):
        return f"changes the {loss} by {abs(known.change):.2g}, as the gradient predicts"
    return f"changes the {loss} by {abs(known.change):.2g}; the gradient predicts {predicted}"
