"""Which variables are meant to get no gradient."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from tb_gradflow.record.expected import expected_by

NAMES = st.text("aB/*?[]!-", max_size=6)


@given(st.lists(NAMES, max_size=4), NAMES)
def test_a_name_is_expected_if_fnmatch_says_so_of_a_pattern(patterns: list[str], name: str) -> None:
    assert expected_by(tuple(patterns))(name) == any(fnmatchcase(name, pattern) for pattern in patterns)
