"""What clips have cut in the recorded steps of a run, and how far each step has moved each variable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from tb_gradflow.analyse.over_time.unmoved import Piece
from tb_gradflow.record.schema import CLIP_STATISTICS, LOSS_SCALE_STATISTICS, VARIABLE_STATISTICS, Clip, Trace

_SCALE, _UPDATES = (LOSS_SCALE_STATISTICS.index(name) for name in ("scale", "updates"))
_BEFORE, _AFTER = (CLIP_STATISTICS.index(name) for name in ("before", "after"))
_WEIGHT, _UPDATE = (VARIABLE_STATISTICS.index(name) for name in ("weight_norm", "update_norm"))

# How many recorded steps are looked at: for a clip, and for updates, which change while a model trains.
_STEPS_OF_CLIP = 256
_STEPS_OF_UPDATE = 32

BY_THE_RATE = frozenset({"Adam", "AdamW", "Adamax", "Nadam", "RMSprop", "Lamb", "AdamOptimizer", "RMSPropOptimizer"})
"""Their updates hardly depend on a factor of the gradient, as long as that is much larger than their epsilon."""

# A norm that is exactly at the limit may be rounded to a little less.
_CUT = 0.999


@dataclass(frozen=True, slots=True)
class ClipSeen:
    """What a clip has done in several recorded steps: all clips of one function or argument with one limit together.

    Attributes:
        by, limit, optimizer, at: As of a `Clip`.
        variables: Those whose gradient it clips.
        steps: The number of the steps in which something was clipped, or could have been.
        cut: In how many of them it has cut something.
        before: The norm of what it was given, in the median of these steps.
        factor: What is left of the norm, in the median.
    """

    by: str
    limit: float | None
    optimizer: int
    at: int | None
    variables: tuple[int, ...]
    steps: int
    cut: int
    before: float
    factor: float

    @property
    def is_always_on(self) -> bool:
        """Whether it has cut in every step."""
        return self.cut == self.steps


_Key = tuple[str, float | None, int, int | None]


def _key(clip: Clip) -> _Key:
    return clip.by, clip.limit, clip.optimizer, clip.at


def clips_of(backwards: Iterable[Piece]) -> tuple[ClipSeen, ...]:
    """`backwards` are the recorded steps up to the one in question, the latest piece first, as far as they have the
    same clips as the last."""
    last: dict[_Key, list[Clip]] = {}
    norms: dict[_Key, list[tuple[float, float]]] = {}
    looked_at = 0
    for number, piece in enumerate(backwards):
        here = _by_key(piece.trace)
        if number == 0:
            last = here
        if here.keys() != last.keys() or not last or looked_at >= _STEPS_OF_CLIP:
            break
        looked_at += len(piece.steps)
        gradients = piece.gradients()
        for key, clips in here.items():
            rows = gradients[:, [each.row for each in clips]].astype(np.float64)
            before, after = (np.linalg.norm(rows[..., column], axis=1) for column in (_BEFORE, _AFTER))
            found = norms.setdefault(key, [])
            found += [(one, other) for one, other in zip(before.tolist(), after.tolist(), strict=True) if one > 0]
    return tuple(
        ClipSeen(
            *key,
            variables=tuple(variable for clip in last[key] for variable in clip.variables),
            steps=len(found),
            cut=sum(after < _CUT * before for before, after in found),
            before=median(before for before, _ in found),
            factor=median(after / before for before, after in found),
        )
        for key, found in norms.items()
        if found
    )


def _by_key(trace: Trace) -> dict[_Key, list[Clip]]:
    found: dict[_Key, list[Clip]] = {}
    for each in trace.clips:
        found.setdefault(_key(each), []).append(each)
    return found


Moves = Mapping[int, tuple[float, ...]]
"""For each variable, by its index: its change divided by its size, in the last recorded steps that have changed it."""


def moves_of(backwards: Iterable[Piece]) -> Moves:
    """`backwards` as above; variables of other traces are matched by name."""
    names: dict[str, int] = {}
    found: dict[int, list[float]] = {}
    looked_at = 0
    for number, piece in enumerate(backwards):
        if number == 0:
            names = {each.name: place for place, each in enumerate(piece.trace.variables) if each.trainable}
        places = [(names[each.name], at) for at, each in enumerate(piece.trace.variables) if each.name in names]
        if looked_at >= _STEPS_OF_UPDATE:
            break
        looked_at += len(piece.steps)
        for variable, at in places:
            found.setdefault(variable, []).extend(_shares(piece.variables[:, at]))
    return {variable: tuple(shares) for variable, shares in found.items() if shares}


def _shares(rows: npt.NDArray[np.float32]) -> list[float]:
    numbers = rows.astype(np.float64)
    weight, update = numbers[:, _WEIGHT], numbers[:, _UPDATE]
    known = (weight > 0) & (update > 0) & np.isfinite(weight) & np.isfinite(update)
    shares: list[float] = (update[known] / weight[known]).tolist()
    return shares


_WHOLE = 0.9
"""Where most of a weight after a step is what the step has added, that is twice as large as what was there before."""

_RISE = 10.0
"""A loss that is so many times the one before has risen."""


@dataclass(frozen=True, slots=True)
class LongStep:
    """An update that was larger than the weights, and the loss afterwards.

    Attributes:
        step: The step.
        before: Its loss.
        after: The far higher one of the next recorded step; not finite if that was not.
    """

    step: int
    before: float
    after: float


def long_step_of(steps: Iterable[tuple[int, Trace, npt.NDArray[np.float32], Sequence[float]]]) -> LongStep | None:
    """The first step of a run with such an update, if the next recorded loss is far higher: a later one may be so for
    another reason, such as a weight of a term that grows. `None` if there is none, and for a loss that was negative, of
    which zero is not the least. `steps` are the recorded ones before the one in question, the first one first: number,
    trace, values of `VARIABLE_STATISTICS` for each variable, and losses."""
    then = dict[str, tuple[int, float]]()
    found, negative = dict[str, LongStep](), set[str]()
    for step, trace, rows, losses in steps:
        named = {target.name: loss for target, loss in zip(trace.targets, losses, strict=False)}
        negative.update(name for name, loss in named.items() if loss < 0)
        for name in then.keys() & named.keys() - found.keys():
            number, before = then.pop(name)
            if not named[name] <= _RISE * abs(before):
                found[name] = LongStep(number, before, named[name])
        places = [at for at, each in enumerate(trace.variables) if each.trainable and len(each.shape) > 1]
        shares = _shares(rows[places])
        if shares and median(shares) > _WHOLE:
            then.update({name: (step, loss) for name, loss in named.items() if np.isfinite(loss)})
    return next((each for name, each in found.items() if name not in negative), None)


@dataclass(frozen=True, slots=True)
class Skipped:
    """The steps up to the current one in which an optimizer has applied no update, because of its loss scale.

    Attributes:
        optimizer: Its index.
        since: The first recorded one of them.
        steps: How many these are.
        scale: The loss scale in the last one.
    """

    optimizer: int
    since: int
    steps: int
    scale: float


def skipped_of(backwards: Iterable[Piece]) -> Skipped | None:
    """`backwards` as above. `None` if the last step was not skipped, or if that is not known."""
    optimizer, until, scale = -1, -1, 0.0
    same: list[int] = []
    counted = np.float32(np.nan)
    for piece in backwards:
        if len(piece.trace.loss_scales) != 1:
            break
        [known] = piece.trace.loss_scales
        rows = piece.gradients()[:, known.row]
        if not same:
            optimizer, until = known.optimizer, piece.steps[-1]
            counted, scale = rows[-1, _UPDATES], float(rows[-1, _SCALE])
        others = np.flatnonzero(rows[:, _UPDATES] != counted)
        same += reversed(piece.steps[others[-1] + 1 if others.size else 0 :])
        if others.size:
            break
    if not same:
        return None
    # As many updates as after an earlier step mean that those after it were skipped.
    since = 0 if same[-1] == 0 and counted == 0 else same[-1] + 1
    return Skipped(optimizer, since, until - since + 1, scale) if since <= until else None
