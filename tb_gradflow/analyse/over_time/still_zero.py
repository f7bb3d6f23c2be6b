"""Which variables that are not trained have been zero in all recorded steps of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tb_gradflow.analyse.over_time.unmoved import Piece
from tb_gradflow.record.schema import VARIABLE_STATISTICS

_WEIGHT, _UPDATE = (VARIABLE_STATISTICS.index(name) for name in ("weight_norm", "update_norm"))

StillZero = Mapping[int, int]
"""By the index of a variable, for how many steps it has been zero."""


def still_zero(backwards: Iterable[Piece]) -> StillZero:
    """`backwards` are the recorded steps up to the one in question, the latest piece first. A variable that was not
    zero in one of them is left out.
    """
    index: dict[str, int] = {}
    left: set[str] = set()
    first = last = -1
    for number, piece in enumerate(backwards):
        places = {variable.name: place for place, variable in enumerate(piece.trace.variables)}
        zero = ((piece.variables[..., _WEIGHT] == 0) & (piece.variables[..., _UPDATE] == 0)).all(axis=0)
        if number == 0:
            index, last = places, piece.steps[-1] if piece.steps else -1
            left = {each.name for each in piece.trace.variables if not each.trainable}
        left = {name for name in left if name not in places or zero[places[name]]}
        if not left:
            return {}
        first = piece.steps[0] if piece.steps else -1
    return {index[name]: last - first for name in left}
