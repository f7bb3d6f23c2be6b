"""Which variables are meant to get no gradient."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from tb_gradflow.record.expected import expected_by, patterns_for

NAMES = st.text("aB/*?[]!-", max_size=6)


@given(st.lists(NAMES, max_size=4), NAMES)
def test_a_name_is_expected_if_fnmatch_says_so_of_a_pattern(patterns: list[str], name: str) -> None:
    assert expected_by(tuple(patterns))(name) == any(fnmatchcase(name, pattern) for pattern in patterns)


@given(st.lists(NAMES, unique=True, max_size=6), st.lists(NAMES, unique=True, max_size=6))
def test_patterns_fit_all_of_the_names_and_none_of_the_others(names: list[str], others: list[str]) -> None:
    others = [name for name in others if name not in names]

    is_expected = expected_by(patterns_for(names, others))

    assert all(map(is_expected, names))
    assert not any(map(is_expected, others))


def test_blocks_that_differ_by_a_number_have_one_pattern() -> None:
    parts = ("query/kernel", "query/bias", "norm/gamma", "norm_1/gamma")
    blocks = [f"model/block_{number}/{part}" for number in range(5) for part in parts]

    patterns = patterns_for(["model/embedding/embeddings", *blocks], ["model/dense/kernel", "model/dense/bias"])

    assert patterns == ("model/block_*/*", "model/embedding/embeddings")


def test_a_layer_of_which_a_part_learns_has_no_pattern() -> None:
    assert patterns_for(["a/kernel", "a/bias", "b/kernel"], ["b/bias"]) == ("a/*", "b/kernel")


def test_the_first_of_several_layers_has_no_number() -> None:
    names = [f"{layer}/{part}" for layer in ("dense", "dense_1", "dense_2") for part in ("kernel", "bias")]

    assert patterns_for(names, ["conv/kernel"]) == ("dense*/*",)
    assert patterns_for(names, ["dense_3/kernel", "density/kernel"]) == ("dense/*", "dense_1/*", "dense_2/*")
