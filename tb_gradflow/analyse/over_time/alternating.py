"""Which variables have no gradient in this step because it trains another part, according to other steps. A step may
train one of several parts: the adapter of the task that its batch belongs to, or the entry of a list that the batch
selects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from tb_gradflow.analyse.over_time.unmoved import Piece
from tb_gradflow.record.schema import GRADIENT_STATISTICS

_SEEN = [GRADIENT_STATISTICS.index(name) for name in ("norm", "nan_count", "inf_count")]

# The number of recorded steps examined. Parts that take turns show it within a few rounds.
_NEAR = 64

# A variable that has waited longer than this, relative to its longest wait before, no longer takes part.
_LONGER = 2

Turns = Mapping[int, int]
"""For each variable that is waiting, by its index: the last recorded step in which it got a gradient."""

Bools = npt.NDArray[np.bool_]


def turns_of(backwards: Iterable[Piece]) -> Turns:
    """`backwards` are the recorded steps up to the one in question, the latest piece first.

    A variable takes turns if it had no gradient, got one, and has none again, for not much longer than before. Once is
    not enough: a variable that gets none from some step on may have been switched off, on purpose or not.
    """
    index: dict[str, int] = {}
    names: list[str] = []
    pieces: list[tuple[tuple[int, ...], Bools]] = []
    for piece in backwards:
        if not pieces:
            index = {each.name: place for place, each in enumerate(piece.trace.variables) if each.trainable}
            got = _got(piece, list(index), slice(-1, None))[-1]
            names = [name for name, one in zip(index, got, strict=True) if not one]
        pieces.append((piece.steps, _got(piece, names)))
        if not names or sum(len(steps) for steps, _ in pieces) >= _NEAR:
            break
    steps = [step for numbers, _ in reversed(pieces) for step in numbers]
    table = np.concatenate([got for _, got in reversed(pieces)]) if names else np.empty((0, 0), bool)
    last = {name: _last_turn(table[:, place]) for place, name in enumerate(names)}
    return {index[name]: steps[place] for name, place in last.items() if place >= 0}


def _got(piece: Piece, names: list[str], steps: slice = slice(None)) -> Bools:
    """`[steps, names]`: which variables got a gradient, even if it was not finite."""
    places = {each.name: place for place, each in enumerate(piece.trace.variables)}
    rows: dict[int, list[int]] = {}
    for entry in piece.trace.variable_gradients:
        if entry.row is not None:
            rows.setdefault(entry.variable, []).append(entry.row)
    of_names = [rows.get(places.get(name, -1), []) for name in names]
    found = np.zeros((len(piece.steps[steps]), len(names)), bool)
    if any(of_names):
        gradients = piece.gradients()[steps]
        for place, listed in enumerate(of_names):
            found[:, place] = np.any(gradients[:, listed][..., _SEEN] > 0, axis=(1, 2))
    return found


def _last_turn(got: Bools) -> int:
    """The last step that trained the variable; -1 if it does not take turns."""
    turns = np.flatnonzero(got)
    if not turns.size:
        return -1
    waits = np.diff(turns, prepend=-1) - 1
    waited = len(got) - 1 - turns[-1]
    return int(turns[-1]) if waits.max() and waited <= _LONGER * waits.max() else -1
