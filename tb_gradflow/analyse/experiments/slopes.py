"""How the loss reacted to small moves of a variable, held against its gradient, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_gradflow.analyse.experiments.wording import apart, loss_called
from tb_gradflow.record.experiments import Slope
from tb_gradflow.record.report import Evidence, Finding
from tb_gradflow.record.schema import Trace

_SAME = 0.1
"""A prediction and what came out are the same if they differ by a smaller part: a step of a hundredth has
curvature."""

_KINKED = ("normalised_then_summed",)
"""Causes that make the gradient small at a kink alone, such as that of a maximum where elements are equal."""

_APART = 0.25
"""A gradient disagrees with the loss if they differ by a larger part, at two lengths."""


def of_slopes(trace: Trace, known: Sequence[Slope], finding: Finding) -> Iterator[Evidence]:
    """Of the variables of a finding: the first that was moved because its gradient is small, and the first whose
    gradient disagrees with the loss."""
    moves: dict[tuple[int, str], list[Slope]] = {}
    for each in known:
        if each.target == finding.target and trace.variables[each.variable].name in finding.variables:
            moves.setdefault((each.variable, each.along), []).append(each)
    alone = [first for first, *others in moves.values() if not others and _tells(first)]
    small = next((each for each in alone if finding.cause in _KINKED and _is_kink(each)), next(iter(alone), None))
    wrong = next((first for first, *others in moves.values() if others and disagree(first, others[0])), None)
    for move in filter(None, (small, wrong)):
        name = trace.variables[move.variable].name
        text = f"{_moving(trace, move, name)} {_outcome(move, loss_called(trace, move.target))}."
        yield Evidence("slope", name, "loss", move.change, move.predicted / move.amount, text)


def _tells(known: Slope) -> bool:
    """Whether a move is worth a line. That a random one changes nothing, moves of the whole variable show better."""
    return known.along == "gradient" or abs(known.change) > known.noise or _is_kink(known)


def _is_kink(known: Slope) -> bool:
    """Whether the loss changes both ways, where the gradient says that it does not."""
    sides = (known.ahead - known.before, known.behind - known.before)
    return known.along == "random" and min(map(abs, sides)) > max(known.noise, 10 * abs(known.predicted))


def disagree(longer: Slope, shorter: Slope) -> bool:
    """Whether the loss reacts otherwise than the gradient says, beyond noise and curvature: at both lengths, by the
    same slope. What a kink does to it falls with the length."""
    gaps = [_gap(longer), _gap(shorter)]
    noise = longer.noise / longer.amount + shorter.noise / shorter.amount
    is_straight = abs(gaps[0] - gaps[1]) <= _APART * abs(gaps[1]) + noise
    return is_straight and all(
        abs(gap) > _APART * max(abs(each.change), abs(each.predicted)) / each.amount + 3 * each.noise / each.amount
        for each, gap in zip((longer, shorter), gaps, strict=True)
    )


def _gap(known: Slope) -> float:
    return (known.change - known.predicted) / known.amount


def _moving(trace: Trace, known: Slope, name: str) -> str:
    moving = f"`{name}`" if not trace.variables[known.variable].shape else f"the elements of `{name}`"
    way = "along the gradient" if known.along == "gradient" else "along random signs"
    return f"Moving {moving} {way}, by up to {known.amount:.3g},"


def _outcome(known: Slope, loss: str) -> str:
    predicted = f"{known.predicted:.2g}"
    if _is_kink(known):
        (before, ahead), (_, behind) = apart(known.before, known.ahead), apart(known.before, known.behind)
        other = f"{behind} the other way; the gradient predicts a change of {predicted}"
        return f"changes the {loss} from {before} to {ahead}, or to {other}"
    if abs(known.change) <= known.noise:
        before = f"{known.before + 0.0:.3g}"
        return f"changes the {loss}, {before}, by less than its rounding; the gradient predicts {predicted}"
    if abs(known.change - known.predicted) <= known.noise + _SAME * abs(known.predicted):
        return f"changes the {loss} by {known.change:.2g}, as the gradient predicts"
    return f"changes the {loss} by {known.change:.2g}; the gradient predicts {predicted}"
