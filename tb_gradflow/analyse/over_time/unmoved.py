"""Which variables get a gradient and never change, according to the recorded steps of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS, Trace

_NORM, _NAN, _INF = (GRADIENT_STATISTICS.index(name) for name in ("norm", "nan_count", "inf_count"))
_WEIGHT, _UPDATE = (VARIABLE_STATISTICS.index(name) for name in ("weight_norm", "update_norm"))

# Between recorded steps a change shows in the norm, which may be summed in another order after a recompilation.
_SAME = 1e-6

# The number of steps required: gradient accumulation changes nothing for a few steps.
SURE_FROM = 4

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive recorded steps of one trace.

    Attributes:
        trace: The trace.
        variables: `[steps, variables, 4]`.
        gradients: Gives `[steps, rows, 6]`, which may have to be read.
        steps: Their numbers.
    """

    trace: Trace
    variables: Floats
    gradients: Callable[[], Floats]
    steps: tuple[int, ...] = ()


Standstill = Mapping[int, int]
"""For each variable that does not change, by its index: in how many recorded steps, while others changed."""


def standstill_of(backwards: Iterable[Piece]) -> Standstill:
    """`backwards` are the recorded steps up to the one in question, the latest piece first.

    A variable counts if no recorded step and no step in between has changed it, and each counted step has changed
    others and gave it a gradient. Steps in which nothing changes at all do not count.
    """
    still: dict[str, float] = {}
    counts: dict[str, int] = {}
    index: dict[str, int] = {}
    for number, piece in enumerate(backwards):
        places = {variable.name: place for place, variable in enumerate(piece.trace.variables)}
        if number == 0:
            index = places
            still = {name: float(piece.variables[-1, places[name], _WEIGHT]) for name in _candidates(piece)}
            counts = dict.fromkeys(still, 0)
        still = {name: norm for name, norm in still.items() if not _changed(piece, places.get(name), norm)}
        if not still:
            return {}
        others = _others_changed(piece)
        for name in still:
            if name in places:
                counts[name] += _counted(piece, places[name], others, verified=counts[name] >= SURE_FROM)
    return {index[name]: counts[name] for name in still if counts[name] > 1}


def _candidates(piece: Piece) -> list[str]:
    """The variables of which it can be said in the last step of a piece; mostly none."""
    last = Piece(piece.trace, piece.variables[-1:], lambda: piece.gradients()[-1:])
    known = (last.variables[0, :, _UPDATE] == 0) & (last.variables[0, :, _WEIGHT] >= 0)
    quiet = [place for place, variable in enumerate(piece.trace.variables) if variable.trainable and known[place]]
    if not quiet or not _others_changed(last).all():
        return []
    return [piece.trace.variables[place].name for place in quiet if _has_gradient(last, place).all()]


def _others_changed(piece: Piece) -> npt.NDArray[np.bool_]:
    """For each step, whether it has changed any trainable variable."""
    trainable = [place for place, variable in enumerate(piece.trace.variables) if variable.trainable]
    changed: npt.NDArray[np.bool_] = np.any(piece.variables[:, trainable, _UPDATE] > 0, axis=1)
    return changed


def _changed(piece: Piece, place: int | None, norm: float) -> bool:
    if place is None:
        return False
    same = is_same(piece.variables[:, [place], _WEIGHT], np.array([norm], np.float32))
    return bool(((piece.variables[:, place, _UPDATE] > 0) | ~same).any())


def is_same(norms: Floats, others: Floats) -> npt.NDArray[np.bool_]:
    """For each step, whether values that have these norms, a variable each, may be the same."""
    with np.errstate(invalid="ignore"):  # a norm may be infinite
        differs: npt.NDArray[np.bool_] = np.any(np.abs(norms - others) > _SAME * others, axis=-1)
    return ~differs


def _counted(piece: Piece, place: int, others: npt.NDArray[np.bool_], *, verified: bool) -> int:
    """How many steps count; of steps long past the gradients need not be read any more."""
    steps = others & (piece.variables[:, place, _UPDATE] == 0)
    return int(np.count_nonzero(steps if verified else steps & _has_gradient(piece, place)))


def _has_gradient(piece: Piece, place: int) -> npt.NDArray[np.bool_]:
    """For each step, whether a variable got a gradient that is finite, and is not zero."""
    rows = [each.row for each in piece.trace.variable_gradients if each.variable == place and each.row is not None]
    gradients = piece.gradients()[:, rows]
    finite = (gradients[..., _NAN] == 0) & (gradients[..., _INF] == 0)
    arrived: npt.NDArray[np.bool_] = np.any((gradients[..., _NORM] > 0) & finite, axis=1)
    return arrived
