"""Matches the variables of two runs: by name, by name without numbers, and otherwise by a guess."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Match = Literal["name", "number", "guess"]
"""How two variables were matched: by the same name; by names that differ only in the numbers that Keras and TensorFlow
append to copies; or only by shape, dtype, position and a part of the name."""


class Named(Protocol):
    """A variable of a report, or of a trace."""

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> str: ...


# Comparing the spelling of two names takes about 30 µs; with more pairs than this, only the order decides.
_MOST_SPELT = 50_000


@dataclass(frozen=True, slots=True)
class Matched:
    """Places of a variable in the two lists, and how it was found."""

    before: int
    now: int
    how: Match


def unnumbered(name: str) -> str:
    """A name without the numbers that distinguish copies of a layer, or of a model."""
    return re.sub(r"_\d+(?=/|$)", "", name)


def match(before: Sequence[Named], now: Sequence[Named]) -> tuple[Matched, ...]:
    """Every variable at most once, in the order of `now`."""
    sure = [*_by_name(before, now)]
    left = _rest(len(before), [pair.before for pair in sure])
    right = _rest(len(now), [pair.now for pair in sure])
    return tuple(sorted([*sure, *_guessed(before, now, left, right, sure)], key=lambda pair: pair.now))


def _by_name(before: Sequence[Named], now: Sequence[Named]) -> list[Matched]:
    left, right = _families(before), _families(now)
    pairs = []
    for family in left.keys() & right.keys():
        ours, theirs = left[family], right[family]
        names = {before[place].name: place for place in ours}
        numbered = {now[place].name for place in theirs} != names.keys()
        if numbered and len(ours) == len(theirs) and _fit(before, now, ours, theirs):
            # In the second model of a program, `dense` is called `dense_2`: the order determines which is which.
            pairs += [Matched(a, b, "number") for a, b in zip(ours, theirs, strict=True)]
        else:
            pairs += [Matched(names[now[b].name], b, "name") for b in theirs if now[b].name in names]
    return pairs


def _families(variables: Sequence[Named]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for place, variable in enumerate(variables):
        found[unnumbered(variable.name)].append(place)
    return found


def _fit(before: Sequence[Named], now: Sequence[Named], ours: Sequence[int], theirs: Sequence[int]) -> bool:
    return all(_kind(before[a]) == _kind(now[b]) for a, b in zip(ours, theirs, strict=True))


def _kind(variable: Named) -> tuple[tuple[int, ...], str]:
    return variable.shape, variable.dtype


def _rest(count: int, taken: Sequence[int]) -> list[int]:
    known = set(taken)
    return [place for place in range(count) if place not in known]


def _guessed(
    before: Sequence[Named],
    now: Sequence[Named],
    left: Sequence[int],
    right: Sequence[int],
    sure: Sequence[Matched],
) -> list[Matched]:
    """Pairs with the same shape and dtype that share a scope or the last part of their name, and have almost the same
    neighbours. The most similar first. Variables without a common part in their names do not match.
    """
    gaps_before, gaps_now = sorted(pair.before for pair in sure), sorted(pair.now for pair in sure)
    by_kind: dict[object, list[tuple[int, int]]] = defaultdict(list)
    for j, b in enumerate(right):
        by_kind[_kind(now[b])].append((j, b))
    pairs_in_all = sum(len(by_kind[_kind(before[a])]) for a in left)
    candidates = []
    for i, a in enumerate(left):
        for j, b in by_kind[_kind(before[a])]:
            same_gap = bisect_left(gaps_before, a) == bisect_left(gaps_now, b)
            alike = _alike(before[a].name, now[b].name, same_gap, spelt=pairs_in_all <= _MOST_SPELT)
            if alike is not None:
                candidates.append((-alike, abs(i - j), i, a, b))
    pairs: list[Matched] = []
    taken_before: set[int] = set()
    taken_now: set[int] = set()
    for _, _, _, a, b in sorted(candidates):
        if a not in taken_before and b not in taken_now:
            pairs.append(Matched(a, b, "guess"))
            taken_before.add(a)
            taken_now.add(b)
    return pairs


def _alike(before: str, now: str, same_gap: bool, *, spelt: bool) -> float | None:
    """A similarity; None for two that are certainly different."""
    scope_before, _, last_before = unnumbered(before).rpartition("/")
    scope_now, _, last_now = unnumbered(now).rpartition("/")
    same_scope, same_last = scope_before == scope_now, last_before == last_now
    if not (same_scope or (same_last and same_gap)):
        return None
    spelling = difflib.SequenceMatcher(None, before, now).ratio() if spelt else 0.0
    return 2 * same_last + 2 * same_scope + same_gap + spelling
