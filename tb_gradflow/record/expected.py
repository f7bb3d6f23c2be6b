"""The variables that are meant to get no gradient, by the patterns of a session."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache


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
