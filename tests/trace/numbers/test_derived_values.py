"""Whether one array was computed from another: found for what programs compute, and for nothing else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tb_gradflow.trace.numerics.derived_values import UNNAMED, Array, relation

FEW = np.random.default_rng(1).normal(size=4)
ROWS = np.random.default_rng(2).normal(size=(5, 4))


def _log_softmax(x: Array) -> Array:
    return np.asarray(x - np.log(np.exp(x).sum(axis=-1, keepdims=True)))


def _standardised(x: Array) -> Array:
    return np.asarray((x - x.mean()) / x.std())


def _columns_of_sum_one(x: Array) -> Array:
    return np.asarray(x / x.sum(axis=0))


@pytest.mark.parametrize("x", [FEW, ROWS], ids=["few", "rows"])
@pytest.mark.parametrize("made_by", [_log_softmax, _standardised, _columns_of_sum_one])
def test_an_offset_and_a_factor_are_seen_in_a_few_elements(made_by: Callable[[Array], Array], x: Array) -> None:
    assert relation(np.float32(x), np.float32(made_by(x))) is not None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (ROWS, np.random.default_rng(3).normal(size=ROWS.shape)),
        (np.array([0.12345, 0.76543]), np.array([0.34567, 0.98765])),
        (np.linspace(0.0, 1.2345, 6), np.linspace(0.54321, 3.3333, 6)),
        (np.array([0.12345, 0.12345, 0.76543, 0.76543]), np.array([0.34567, 0.34567, 0.98765, 0.98765])),
    ],
    ids=["other numbers", "two numbers", "two grids", "two numbers, repeated"],
)
def test_two_points_and_grids_lie_on_a_line_by_chance(first: Array, second: Array) -> None:
    assert relation(np.float32(first), np.float32(second)) is None


def test_random_numbers_are_on_no_line() -> None:
    random = np.random.default_rng(4)

    found = [relation(*np.float32(random.normal(size=(2, 3)))) for _ in range(3000)]

    assert not any(each is not None for each in found)


def test_of_equal_elements_no_function_of_all_of_them_is_named() -> None:
    ones = np.ones(7)

    assert relation(ones, ones / ones.sum()) == UNNAMED
    assert relation(np.float32(FEW), np.float32(np.exp(FEW) / np.exp(FEW).sum())) == "tf.nn.softmax"
