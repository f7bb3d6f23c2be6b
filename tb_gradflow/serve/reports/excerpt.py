"""Reduces a run to the size of a self-contained page: fewer steps if there are many, but every finding."""

from __future__ import annotations

import base64
import gzip
import itertools
import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tb_gradflow.record.codec import encode
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import FORMAT, GRADIENT_STATISTICS, VARIABLE_STATISTICS
from tb_gradflow.serve.reports.answers import overview_of
from tb_gradflow.serve.runs.course import Key, key, spread, told, wanted
from tb_gradflow.serve.runs.finite import finite
from tb_gradflow.serve.runs.history import Floats, History
from tb_gradflow.store.layout import pack_json
from tb_gradflow.store.run import ChunkHead, RunIndex

Json = dict[str, Any]

MOST_STEPS = 400
"""A slider on a screen cannot distinguish more."""

# Up to this many steps, each is analysed. Of more, 64 are, evenly spread, and then those between two that differ.
EACH_LOOKED_AT = 512

# Analysing one step takes 2 ms for a small model, 50 ms for ResNet50, seconds for 30,000 ops. Nobody waits longer than
# this.
SECONDS_OF_LOOKING = 90.0
LEAST_LOOKED_AT = 8

KEPT_BITS = 12
"""The number of mantissa bits of a norm that are kept, of 23: a relative error of 0.0001, and the page shows three
figures."""

_COARSE = {"norm", "max_abs", "mean_abs", "weight_norm", "update_norm"}
# Margin on the first guess of the number of steps, because fewer steps compress less well.
_MARGIN = 0.95
_ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of a run that a page contains.

    Attributes:
        recorded: Number of steps in the log.
        kept: Number of steps in the page.
        looked_at: Number of steps that were analysed: all, unless there are very many or one takes very long.
        content: The data, with the keys that `frontend/src/api/embedded.ts` knows, for JSON.
    """

    recorded: int
    kept: int
    looked_at: int
    content: Json


def excerpt(history: History, run: str, room: int, step: int | None = None) -> Excerpt:
    """At most `room` bytes in base64, if all findings fit in there. `step` is one that must be kept."""
    history.refresh()
    index = history.readable()
    found, is_complete = _look(history, index)
    order = _by_importance(index, found, step)
    if not is_complete:
        # A kept step needs a report, which would have to be computed first.
        order = [each for each in order if each in found or each == step]
    must = len({*_essential(index, found, step)})
    count = min(len(order), MOST_STEPS)
    for _ in range(_ATTEMPTS):
        kept = sorted(order[:count])
        content = _content(history, run, _thinned(index, kept), found)
        size = _size(content)
        if size <= room or count <= must:
            break
        count = max(must, min(count - 1, int(count * room / size * _MARGIN)))
    return Excerpt(len(index.steps), len(kept), len(found), content)


def _look(history: History, index: RunIndex) -> tuple[dict[int, frozenset[Key]], bool]:
    """The findings at the steps, and whether there was time to analyse all of them."""
    found: dict[int, frozenset[Key]] = {}
    few = len(index.steps) <= EACH_LOOKED_AT
    steps = (index.steps[at] for at in spread(len(index.steps))) if few else wanted(index.steps, found)
    began = time.monotonic()
    for step in steps:
        if len(found) >= LEAST_LOOKED_AT and time.monotonic() - began > SECONDS_OF_LOOKING:
            return found, False
        found[step] = frozenset(key(finding) for finding in history.diagnose(step).findings)
    return found, True


def _essential(index: RunIndex, found: dict[int, frozenset[Key]], step: int | None) -> Iterator[int]:
    """The ends, the requested step, and the first step of each finding."""
    if index.steps:
        yield index.steps[-1]
        yield index.steps[0]
    if step is not None and index.find(step) is not None:
        yield step
    seen: set[Key] = set()
    for each in sorted(found):
        if found[each] - seen:
            seen |= found[each]
            yield each


def _by_importance(index: RunIndex, found: dict[int, frozenset[Key]], step: int | None) -> list[int]:
    """All steps: the essential ones, then those where findings begin and end, then ever finer."""
    order = dict.fromkeys(_essential(index, found, step))
    looked = sorted(found)
    for before, now in itertools.pairwise(looked):
        if found[before] != found[now]:
            order.update({before: None, now: None})
    order.update(dict.fromkeys(index.steps[at] for at in spread(len(index.steps))))
    return list(order)


def _thinned(index: RunIndex, kept: Sequence[int]) -> RunIndex:
    """The index with only these steps; consecutive steps of one trace form one chunk."""
    wanted = set(kept)
    heads: list[ChunkHead] = []
    for chunk in index.chunks:
        places = [at for at, step in enumerate(chunk.steps) if step in wanted]
        if not places:
            continue
        steps = tuple(chunk.steps[at] for at in places)
        times = tuple(chunk.wall_times[at] for at in places)
        losses = tuple(chunk.losses[at] for at in places)
        last = heads[-1] if heads else None
        if last is not None and last.trace == chunk.trace:
            steps, times, losses = (*last.steps, *steps), (*last.wall_times, *times), (*last.losses, *losses)
            heads.pop()
        heads.append(ChunkHead(steps[0], chunk.trace, steps, times, losses))
    return replace(index, chunks=tuple(heads))


def _content(history: History, run: str, index: RunIndex, found: dict[int, frozenset[Key]]) -> Json:
    session = index.session.id
    kept = {step: found.get(step) for step in index.steps}
    diagnoses = [history.diagnose(step) for step in index.steps] or [history.diagnose()] * bool(index.traces)
    course = told({step: keys for step, keys in kept.items() if keys is not None}, True)
    return {
        "overview": overview_of(index, run, run),
        "course": {"format": FORMAT, **course, "damage": history.damage},
        "traces": {str(trace): _packed(history.trace_json(session, trace)) for trace in index.traces},
        "reports": _packed(pack_json(_interned(diagnoses))),
        "gradients": {str(head.id): _numbers(history.gradients, session, head, history) for head in index.chunks},
        "variables": {str(head.id): _numbers(history.variables, session, head, history) for head in index.chunks},
    }


def _numbers(read: Any, session: str, head: ChunkHead, history: History) -> Json:
    """The statistics of some steps, which may be in several chunks of the log."""
    rows = []
    for step in head.steps:
        there = history.index().find(step)
        assert there is not None
        rows.append(read(session, there[0].id)[there[1]])
    values = np.stack(rows)
    return {"shape": list(values.shape), "data": base64.b64encode(packed_floats(values)).decode()}


def packed_floats(values: Floats) -> bytes:
    """Gzipped float32 `[steps, rows, statistics]`: similar values next to each other, norms rounded to KEPT_BITS bits.

    Statistics first, then rows, then steps; the highest bytes of all numbers come first, then the second bytes, and so
    on.
    """
    names = GRADIENT_STATISTICS if values.shape[2] == len(GRADIENT_STATISTICS) else VARIABLE_STATISTICS
    coarse = np.array(values, "<f4")
    for column, name in enumerate(names):
        if name in _COARSE:
            coarse[:, :, column] = rounded(coarse[:, :, column])
    planes = np.ascontiguousarray(coarse.transpose(2, 1, 0)).view(np.uint8).reshape(-1, 4)[:, ::-1].T
    return gzip.compress(np.ascontiguousarray(planes).tobytes(), mtime=0)


def rounded(values: Floats) -> Floats:
    """The nearest numbers with this many mantissa bits; numbers that are not finite, or would become so, are
    unchanged.
    """
    bits = np.ascontiguousarray(values, "<f4").view(np.uint32)
    dropped = 23 - KEPT_BITS
    near = ((bits + np.uint32(1 << (dropped - 1))) >> np.uint32(dropped) << np.uint32(dropped)).view(np.float32)
    return np.where(np.isfinite(values) & np.isfinite(near), near, values)


def _interned(diagnoses: Sequence[Diagnosis]) -> Json:
    """Reports repeat most of their texts: each text is stored once. The statistics of variables are in the chunks."""
    variables, findings = _Once(), _Once()
    reports = [
        {
            "format": each.format,
            "step": each.step,
            "trace": each.trace,
            "summary": each.summary,
            "variables": [variables.place(replace(variable, gradient=None)) for variable in each.variables],
            "findings": [findings.place(finding) for finding in each.findings],
            "unverified": list(each.unverified),
            "terms": [finite(encode(term)) for term in each.terms],
            "verdict": finite(encode(each.verdict)),
            "fit": finite(encode(each.fit)),
        }
        for each in diagnoses
    ]
    return {"variables": variables.values, "findings": findings.values, "reports": reports}


class _Once:
    """Replaces values by their index in the order of first occurrence."""

    def __init__(self) -> None:
        self._places: dict[Hashable, int] = {}
        self.values: list[Any] = []

    def place(self, value: Any) -> int:
        if value not in self._places:
            self._places[value] = len(self.values)
            self.values.append(finite(encode(value)))
        return self._places[value]


def _packed(blob: bytes) -> str:
    return base64.b64encode(blob).decode()


def _size(content: Json) -> int:
    numbers = [part["data"] for kind in ("gradients", "variables") for part in content[kind].values()]
    return sum(map(len, (*numbers, *content["traces"].values(), content["reports"])))
