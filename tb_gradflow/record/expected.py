"""The variables that are meant to get no gradient, by the patterns of a session."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from glob import escape


def is_pattern(text: str) -> bool:
    """Whether fnmatch takes it for more than the name that it is."""
    return any(special in text for special in "*?[")


@lru_cache(maxsize=16)
def expected_by(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether one of these patterns (fnmatch) fits a name. Each is compiled once, however many names there are."""
    names = frozenset(each for each in patterns if not is_pattern(each))
    compiled = [re.compile(translate(each)) for each in dict.fromkeys(patterns) if is_pattern(each)]

    def is_expected(name: str) -> bool:
        return name in names or any(each.match(name) for each in compiled)

    return is_expected


def patterns_for(names: Sequence[str], others: Collection[str]) -> tuple[str, ...]:
    """Few patterns that fit all of some names and none of the others: of whole layers, and of layers whose names differ
    only by a number. The largest first; what no such pattern covers is listed by its name."""
    literal: dict[str, list[str]] = {}
    numbered: dict[str, list[str]] = {}
    for name in names:
        for owner in owners_of(name):
            literal.setdefault(owner, []).append(name)
            numbered.setdefault(_NUMBER.sub("", owner), []).append(name)
    taken = {owner for other in others for owner in owners_of(other)}
    offered = [(f"{escape(owner)}/*", found) for owner, found in literal.items() if owner not in taken]
    offered += [(_with_any_number(owner, found), found) for owner, found in numbered.items()]
    left, chosen = dict.fromkeys(names), []
    for pattern, found in sorted(offered, key=lambda each: (-len(each[1]), each[0].count("*"))):
        if len(found) > 1 and all(name in left for name in found):
            fits = re.compile(translate(pattern)).match
            if all(map(fits, found)) and not any(map(fits, others)):
                chosen.append(pattern)
                left = {name: None for name in left if not fits(name)}
    return (*chosen, *map(escape, left))


_NUMBER = re.compile(r"_\d+(?=/|$)")


def owners_of(name: str) -> Iterator[str]:
    """The layers that contain it, the innermost first."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _with_any_number(owner: str, names: Sequence[str]) -> str:
    """A pattern of the layers whose name without numbers is that; the numbers are required where all names have one."""
    depth = owner.count("/") + 1
    parts = zip(*(name.split("/")[:depth] for name in names), strict=True)
    return "/".join(map(_any_of, parts)) + "/*"


def _any_of(parts: Iterable[str]) -> str:
    known = set(parts)
    if len(known) == 1:
        return escape(known.pop())
    has_number = all(_NUMBER.search(part) for part in known)
    return escape(_NUMBER.sub("", known.pop())) + ("_*" if has_number else "*")
