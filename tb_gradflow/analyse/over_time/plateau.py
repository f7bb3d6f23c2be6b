"""Since when no variable of a run changes any more, although gradients arrive, according to its recorded steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_gradflow.analyse.over_time.unmoved import SURE_FROM, Piece, is_same
from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS, Trace

_NORM, _NAN, _INF = (GRADIENT_STATISTICS.index(name) for name in ("norm", "nan_count", "inf_count"))
_WEIGHT, _UPDATE = (VARIABLE_STATISTICS.index(name) for name in ("weight_norm", "update_norm"))

# Fewer steps may be a learning rate that rises from zero, an epoch that only measures, or accumulated gradients.
LONG = 64
# A training at its end does not change either: its gradients are then much smaller than in the beginning.
_LITTLE_LEFT = 1e-2

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Rest:
    """Steps in which nothing changes, up to the current one.

    Attributes:
        since: The first recorded one of them.
        until: The one in question.
        steps: How many were recorded.
        moved: Whether something has changed before.
        sure: Whether they are more than half of the run, and gradients are about as large as in the beginning.
    """

    since: int
    until: int
    steps: int
    moved: bool
    sure: bool


def rest_of(backwards: Iterable[Piece], beginning: Callable[[], Piece]) -> Rest | None:
    """None if a recent step has changed something, or if it is not known.

    Args:
        backwards: The recorded steps up to the one in question, the latest piece first.
        beginning: The first recorded steps of the run.
    """
    names: list[str] = []
    last: Floats | None = None
    latest: Piece | None = None
    rested: list[int] = []
    moved = False
    for piece in backwards:
        if last is None:
            latest, names = piece, _trainable(piece.trace)
            last = piece.variables[-1, _places(piece.trace, names)]
            if not names or not _is_known(last) or _size(piece, -1) == 0:
                return None
        if not set(names) <= set(_trainable(piece.trace)):
            moved = True  # others were trained then
            break
        numbers = piece.variables[:, _places(piece.trace, names)]
        changed = np.flatnonzero(~_is_known(numbers) | ~is_same(numbers[..., _WEIGHT], last[:, _WEIGHT]))
        rested.extend(reversed(piece.steps[changed[-1] + 1 if changed.size else 0 :]))
        if changed.size:
            # Of the first step, which may have created its variables, no change is known.
            before = numbers[changed]
            known = (before[..., _UPDATE] > 0).any(-1) | ~is_same(before[..., _WEIGHT], last[:, _WEIGHT])
            moved = bool(known.any()) or piece.steps[0] != beginning().steps[0]
            break
    if latest is None or len(rested) < SURE_FROM:
        return None
    first = beginning()
    long = rested[0] - rested[-1] >= max(LONG, (rested[0] - first.steps[0]) / 2)
    lively = _size(latest, -1) > _LITTLE_LEFT * _size(first, 0)
    return Rest(rested[-1], rested[0], len(rested), moved, long and lively)


def _trainable(trace: Trace) -> list[str]:
    """Those that the step computes with and that are floating ones."""
    asked = {entry.variable for entry in trace.variable_gradients if entry.outcome == "value"}
    return [each.name for place, each in enumerate(trace.variables) if each.trainable and place in asked]


def _places(trace: Trace, names: list[str]) -> list[int]:
    by_name = {each.name: place for place, each in enumerate(trace.variables)}
    return [by_name[name] for name in names]


def _is_known(numbers: Floats) -> npt.NDArray[np.bool_]:
    """For each step, whether it is known to have changed nothing."""
    known: npt.NDArray[np.bool_] = np.all((numbers[..., _UPDATE] == 0) & (numbers[..., _WEIGHT] >= 0), axis=-1)
    return known


def _size(piece: Piece, at: int) -> float:
    """The largest gradient norm of a variable in a step; 0 if one is not finite."""
    rows = [each.row for each in piece.trace.variable_gradients if each.row is not None]
    numbers = piece.gradients()[at, rows]
    if not rows or (numbers[:, [_NAN, _INF]] > 0).any():
        return 0.0
    return float(np.nanmax(numbers[:, _NORM], initial=0.0))
