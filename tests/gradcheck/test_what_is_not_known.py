"""Where finite differences cannot tell, it is said that they cannot; and what only looks right is not called so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tb_gradflow
from tb_gradflow.errors import IncorrectGradients, SetupError

POINT = np.array([0.3, 1.7, 2.2])


def matrix_of_sines(a: Any) -> Any:
    return np.sum(np.sin(a) * np.arange(9.0).reshape(3, 3))


NOT_KNOWN: dict[str, tuple[str, Callable[..., Any], Any, Callable[..., Any]]] = {
    "single precision beside 1e8": ("step", lambda v: np.float32(1e8) + np.sum(v), np.float32(POINT), np.ones_like),
    "the same, and wrong": ("step", lambda v: np.float32(1e8) + np.sum(v), np.float32(POINT), lambda v: 7 + 0 * v),
    "few digits": ("step", lambda v: round(float(np.sum(v**2)) / 1e3 + 1, 6), POINT, lambda v: 2 * v / 1e3),
    "new numbers": ("random", lambda v: v @ np.random.default_rng().normal(size=3), POINT, np.ones_like),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_what_is_not_known_is_neither_right_nor_wrong(name: str) -> None:
    verdict, function, point, gradient = NOT_KNOWN[name]

    check = tb_gradflow.check_gradients(function, (point,), gradient)

    assert (check.arguments["0"].verdict, check.arguments["0"].known) == (verdict, False)
    assert f"{verdict} (not known)" in str(check)
    assert "WRONG" not in str(check)
    with pytest.raises(IncorrectGradients):
        check.assert_correct()


WRONG: dict[str, tuple[str, Callable[..., Any], Any, Callable[..., Any], str]] = {
    "a slope in a dead ReLU": (
        "differs",
        lambda v: np.sum(np.maximum(v, 0)),
        np.array([-1.0, 2.0]),
        np.ones_like,
        "[0]: 1 instead of 0",
    ),
    "a transposed square matrix": (
        "order",
        matrix_of_sines,
        np.arange(9.0).reshape(3, 3),
        lambda a: (np.cos(a) * np.arange(9.0).reshape(3, 3)).T,
        "it is transposed",
    ),
    "a factor of 1.001": ("factor", lambda v: np.sum(np.sin(v)), POINT, lambda v: 1.001 * np.cos(v), "1.001 times"),
    "a mean for a sum": ("factor", lambda v: np.sum(np.sin(v)), POINT, lambda v: np.cos(v) / 30, "If 30 is"),
    "a difference of a lost step": (
        "step",
        lambda v: np.sum(np.sin(v)),
        POINT,
        lambda v: [(np.sum(np.sin(v + m)) - np.sum(np.sin(v - m))) / 2e-14 for m in 1e-14 * np.eye(3)],
        "1e-14",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_called_that_with_its_reason(name: str) -> None:
    verdict, function, point, gradient, words = WRONG[name]

    check = tb_gradflow.check_gradients(function, (point,), gradient).arguments["0"]

    assert (check.verdict, check.correct, check.known) == (verdict, False, True)
    assert words in check.message


def test_a_cusp_is_a_kink() -> None:
    check = tb_gradflow.check_gradients(
        lambda v: np.sum(np.sqrt(np.abs(v))), (np.array([0.0, 1.0]),), lambda v: np.where(v == 0, 0.0, 0.5)
    )

    assert check.arguments["0"].verdict == "kink"


def test_an_argument_that_the_gradient_leaves_out_is_said_not_to_be_compared() -> None:
    check = tb_gradflow.check_gradients(lambda v, w: np.sum(v**2 * w), (POINT, POINT), lambda v, w: 2 * v * w)

    assert {name: each.verdict for name, each in check.arguments.items()} == {"0": "agrees"}
    assert "Argument 1 was not compared: your gradient returns nothing for it." in str(check)


def test_what_cannot_be_compared_is_told_at_once() -> None:
    with pytest.raises(SetupError, match="returned only None"):
        tb_gradflow.check_gradients(lambda v: v[0] ** 2, (POINT,), lambda v: None)
    with pytest.raises(SetupError, match="returns 3 values"):
        tb_gradflow.check_gradients(lambda v: v**2, (POINT,), lambda v: 2 * v)
    with pytest.raises(SetupError, match="real and imaginary part"):
        tb_gradflow.check_gradients(abs, (np.array(1j),), lambda z: z)
