"""Which variables have had the same value in all recorded steps of a run, so far as their norms tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tb_gradflow.analyse.over_time.unmoved import Piece, is_same
from tb_gradflow.record.schema import VARIABLE_STATISTICS

_WEIGHT, _UPDATE = (VARIABLE_STATISTICS.index(name) for name in ("weight_norm", "update_norm"))

Unchanged = Mapping[int, int]
"""By the index of a variable, for how many steps it has been the same."""


def unchanged_of(backwards: Iterable[Piece]) -> Unchanged:
    """`backwards` are the recorded steps up to the one in question, the latest piece first."""
    index: dict[str, int] = {}
    left: dict[str, float] = {}
    first = last = -1
    for number, piece in enumerate(backwards):
        places = {variable.name: place for place, variable in enumerate(piece.trace.variables)}
        if number == 0:
            index, last = places, piece.steps[-1] if piece.steps else -1
            left = {name: float(piece.variables[-1, place, _WEIGHT]) for name, place in places.items()}
        left = {name: norm for name, norm in left.items() if name not in places or _is_still(piece, places[name], norm)}
        if not left:
            return {}
        first = piece.steps[0] if piece.steps else -1
    return {index[name]: last - first for name in left}


def _is_still(piece: Piece, place: int, norm: float) -> bool:
    same = is_same(piece.variables[:, [place], _WEIGHT], np.array([norm], np.float32))
    return bool((same & (piece.variables[:, place, _WEIGHT] >= 0) & (piece.variables[:, place, _UPDATE] == 0)).all())
