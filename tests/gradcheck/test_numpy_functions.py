"""Gradients that somebody wrote for a function of NumPy arrays, right and wrong in every way that people get them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tb_gradflow
from tb_gradflow.errors import IncorrectGradients, SetupError
from tests.serve.processes import environment

RNG = np.random.default_rng(3)
ROWS, ANSWERS = RNG.normal(size=(40, 7)), RNG.normal(size=40)
WEIGHTS, MATRIX = RNG.normal(size=7), RNG.normal(size=(4, 3))

Function = Callable[..., Any]
Case = tuple[str, Function, tuple[Any, ...], Function | None]


def mean_of_squares(w: Any) -> Any:
    return np.mean((ROWS @ w - ANSWERS) ** 2)


def huber(d: Any) -> Any:
    return np.sum(np.where(np.abs(d) < 1, 0.5 * d * d, np.abs(d) - 0.5))


def hinge(w: Any) -> Any:
    return np.maximum(0, 1 - w).sum()


def shares(z: Any) -> Any:
    return np.exp(z) / np.exp(z).sum()


def surprise(z: Any) -> Any:
    return -np.log(shares(z)[0])


def of_flat(p: Any) -> Any:
    return np.sum(np.sin(p.reshape(4, 3) @ np.arange(3.0)))


def its_gradient(p: Any) -> Any:
    return np.cos(p.reshape(4, 3) @ np.arange(3.0))[:, np.newaxis] * np.arange(3.0)


CASES: dict[str, Case] = {
    "a square": ("agrees", lambda v: np.sum(v**2), (RNG.normal(size=5),), lambda v: 2 * v),
    "a list of numbers": ("agrees", lambda v: v[0] ** 2 + 3 * v[1], ([2.0, 1],), lambda v: [2 * v[0], 3.0]),
    "a number": ("agrees", lambda v: np.sin(v), (0.3,), np.cos),
    "value and gradient at once": ("agrees", lambda p: (np.sum(p**2), 2 * p), (np.ones(3),), None),
    "half precision": ("agrees", lambda v: np.sum(v**2), (np.array([1, 2, 3], np.float16),), lambda v: 2 * v),
    "single precision": ("agrees", lambda w: np.sum(np.tanh(w)), (np.float32(WEIGHTS),), lambda w: 1 - np.tanh(w) ** 2),
    "Huber's loss": ("agrees", huber, (np.array([0.5, 2.0, -3.0]),), lambda d: np.clip(d, -1, 1)),
    "its sign forgotten": ("differs", huber, (np.array([0.5, 2.0, -3.0]),), lambda d: np.where(np.abs(d) < 1, d, 1.0)),
    "cross-entropy": ("agrees", surprise, (WEIGHTS,), lambda z: shares(z) - np.eye(7)[0]),
    "the label forgotten": ("differs", surprise, (WEIGHTS,), shares),
    "a sign": ("factor", mean_of_squares, (WEIGHTS,), lambda w: -2 * ROWS.T @ (ROWS @ w - ANSWERS) / 40),
    "a sum for a mean": ("factor", mean_of_squares, (WEIGHTS,), lambda w: 2 * ROWS.T @ (ROWS @ w - ANSWERS)),
    "the 2 of a square": ("factor", mean_of_squares, (WEIGHTS,), lambda w: ROWS.T @ (ROWS @ w - ANSWERS) / 40),
    "Fortran order": ("order", of_flat, (MATRIX.ravel(),), lambda p: its_gradient(p).ravel(order="F")),
    "transposed": ("order", lambda w: np.sum(w**3), (MATRIX,), lambda w: (3 * w**2).T),
    "filled in Fortran order": (
        "order",
        lambda w: np.sum(w**3),
        (MATRIX,),
        lambda w: (3 * w**2).ravel(order="F").reshape(w.shape),
    ),
    "a broadcast not summed": (
        "differs",
        lambda b: np.sum((np.ones((6, 3)) + b) ** 2),
        (np.ones(3),),
        lambda b: 2 * (np.ones((6, 3)) + b),
    ),
    "a floor with a slope": ("straight_through", lambda v: np.sum(np.floor(v)), (np.array([0.3, 1.7]),), np.ones_like),
    "a hinge at its kink": ("kink", hinge, (np.array([1.0, 0.2, 3.0]),), lambda w: -1.0 * (w < 1)),
    "new random numbers": ("random", lambda v: v @ np.random.default_rng().normal(size=3), (np.ones(3),), np.ones_like),
    "not a number": ("differs", lambda v: np.sum(np.log(v)), (-np.ones(3),), lambda v: 1 / v),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_verdict(name: str) -> None:
    verdict, function, args, gradient = CASES[name]

    check = tb_gradflow.check_gradients(function, args, gradient)

    assert check.arguments["0"].verdict == verdict, str(check)
    if check.correct:
        check.assert_correct()
    else:
        with pytest.raises(IncorrectGradients, match=verdict):
            check.assert_correct()


def test_each_of_several_arguments_has_a_verdict() -> None:
    check = tb_gradflow.check_gradients(
        lambda w, b: np.sum((ROWS @ w + b) ** 2),
        (WEIGHTS, np.array([0.5])),
        lambda w, b: (2 * ROWS.T @ (ROWS @ w + b), 2 * (ROWS @ w + b)),
    )

    assert [each.verdict for each in check.arguments.values()] == ["agrees", "differs"]
    assert "sum over the axes that were broadcast" in check.arguments["1"].message


def test_arrays_inside_of_an_argument_are_named_by_their_places() -> None:
    def loss(p: Any) -> Any:
        return np.sum(np.tanh(ROWS @ p["w"]) * p["scale"])

    def gradient(p: Any) -> Any:
        hidden = np.tanh(ROWS @ p["w"])
        return {"w": ROWS.T @ (1 - hidden**2) * p["scale"], "scale": 2 * np.sum(hidden)}

    check = tb_gradflow.check_gradients(loss, ({"w": WEIGHTS, "scale": 1.5},), gradient)

    assert {name: each.verdict for name, each in check.arguments.items()} == {
        "0['w']": "agrees",
        "0['scale']": "factor",
    }


def test_what_is_said_names_the_factor_and_why() -> None:
    _, function, args, gradient = CASES["the 2 of a square"]
    half = tb_gradflow.check_gradients(function, args, gradient).arguments["0"]

    assert half.factor == 0.5
    assert "the factor of 2 of a square" in half.message


def test_blocks_of_a_flat_vector_that_are_in_fortran_order_are_told_with_their_shape() -> None:
    """Andrew Ng's exercise in Python: MATLAB unrolls matrices column by column."""
    second = RNG.normal(size=(3, 2))

    def loss(p: Any) -> Any:
        return of_flat(p[:12]) + np.sum(p[12:].reshape(3, 2) @ np.array([1.0, 3.0]) ** 2)

    def gradient(p: Any) -> Any:
        lower = p[12:].reshape(3, 2)
        slope = np.stack([np.full(3, 1.0), np.array([2.0, 4.0, 6.0])], axis=1)
        exact = np.stack([_slope(lambda q: loss(np.append(p[:12], q)), lower.ravel(), place) for place in range(6)])
        assert slope.shape == lower.shape
        return np.append(its_gradient(p[:12]).ravel(order="F"), exact.reshape(3, 2).ravel(order="F"))

    message = (
        tb_gradflow.check_gradients(loss, (np.append(MATRIX.ravel(), second.ravel()),), gradient).arguments["0"].message
    )

    assert "elements 0 to 11 are a 4x3 matrix in Fortran order" in message
    assert "elements 12 to 17 are a 3x2 matrix in Fortran order" in message


def _slope(function: Function, point: Any, place: int) -> Any:
    move = np.zeros_like(point)
    move[place] = 1e-6
    return (function(point + move) - function(point - move)) / 2e-6


@pytest.mark.parametrize(("step", "verdict"), [(0.1, "step"), (1e-5, "agrees"), (1e-14, "step")])
def test_whoever_trains_by_finite_differences_learns_how_good_the_step_is(step: float, verdict: str) -> None:
    check = tb_gradflow.check_gradients(lambda v: np.sum(np.exp(v)), (np.array([0.3, 1.7]),), step=step).arguments["0"]

    assert check.verdict == verdict
    assert check.best_step is not None
    assert 1e-8 < check.best_step < 1e-3


def test_a_gradient_that_is_a_finite_difference_itself_is_known_as_one() -> None:
    def gradient(v: Any) -> Any:
        moves = 0.1 * np.eye(2)
        return np.array([(np.sum(np.exp(v + move)) - np.sum(np.exp(v - move))) / 0.2 for move in moves])

    check = tb_gradflow.check_gradients(lambda v: np.sum(np.exp(v)), (np.array([0.3, 1.7]),), gradient).arguments["0"]

    assert check.verdict == "step"
    assert "central difference with a step of 0.1" in check.message


def solver(thetas: Any) -> float:
    """As a finite-element program prints its result: six digits."""
    return float(round(-0.07 - 1e-6 * (thetas[0] - 1000) - 3e-7 * thetas[0] ** 0.5 + 1e-5 * thetas[1] * thetas[2], 6))


def loss_of_solver(thetas: Any) -> Any:
    return (solver(thetas) + 0.1) ** 2 / 2


def test_a_solver_that_returns_few_digits_wants_a_larger_step_and_a_huge_rate_diverges() -> None:
    check = tb_gradflow.check_gradients(loss_of_solver, ([1000.0, 1.0, 1.0, 1.0, 1.0],), step=0.1, learning_rate=1e7)

    assert check.arguments["0"].verdict == "step"
    assert "it returns too few digits" in check.arguments["0"].message
    [note] = check.notes
    assert "diverges" in note


@pytest.mark.parametrize(("rate", "diverges"), [(2.0, True), (0.1, False)])
def test_a_rate_at_which_descent_diverges_is_called_that(rate: float, diverges: bool) -> None:
    check = tb_gradflow.check_gradients(
        lambda v: float(np.sum(v**2)), (np.array([3.0, 1.7]),), lambda v: 2 * v, learning_rate=rate
    )

    assert bool(check.notes) == diverges
    if diverges:
        assert "Rates below about 1 do not overshoot" in check.notes[0]


def test_random_numbers_of_the_functions_own_are_held_still_and_go_on_as_they_would() -> None:
    np.random.seed(5)
    expected = np.random.normal()
    np.random.seed(5)

    check = tb_gradflow.check_gradients(
        lambda v: np.sum(v**2 * np.random.uniform(1, 2)), (np.ones(3),), lambda v: 2 * v
    )

    assert check.arguments["0"].verdict == "factor"
    assert np.random.normal() == expected


def test_the_function_may_write_into_what_it_is_given() -> None:
    point = np.ones(3)

    def spoiling(v: Any) -> Any:
        v *= 2
        return np.sum(v**2)

    tb_gradflow.check_gradients(spoiling, (point,), lambda v: 8 * v).assert_correct()
    assert np.array_equal(point, np.ones(3))


def test_many_numbers_are_checked_by_some_directions() -> None:
    point = RNG.normal(size=200_000)

    right = tb_gradflow.check_gradients(lambda v: np.mean(np.sin(v)), (point,), lambda v: np.cos(v) / v.size)
    wrong = tb_gradflow.check_gradients(lambda v: np.mean(np.sin(v)), (point,), lambda v: np.cos(v))

    assert right.arguments["0"].verdict == "agrees"
    assert right.evaluations < 1000
    assert (wrong.arguments["0"].verdict, wrong.arguments["0"].factor) == ("factor", 200_000)


def test_what_is_wrong_with_the_arguments_is_told_at_once() -> None:
    with pytest.raises(SetupError, match="pass your own gradient"):
        tb_gradflow.check_gradients(lambda v: float(np.sum(v)), (np.ones(2),))
    with pytest.raises(SetupError, match="contains no floating-point numbers"):
        tb_gradflow.check_gradients(lambda n: 2 * n, (3,), lambda n: 2)
    with pytest.raises(SetupError, match="step must be greater than 0, got -1"):
        tb_gradflow.check_gradients(np.sum, (np.ones(2),), np.ones_like, step=-1)
    with pytest.raises(SetupError, match="takes a function"):
        tb_gradflow.check_gradients(np.ones(2), (np.ones(2),))  # type: ignore[arg-type]


def test_the_text_and_the_picture_show_the_steps_and_the_best_of_them() -> None:
    verdict, function, args, gradient = CASES["a square"]
    check = tb_gradflow.check_gradients(function, args, gradient)

    assert "argument 0: agrees (ok)" in str(check)
    assert "best" in str(check)
    assert "<svg" in check._repr_html_()
    assert repr(check) == f"<GradientsCheck 0: {verdict}>"


def test_functions_of_numpy_are_checked_without_tensorflow() -> None:
    code = (
        "import numpy as np, sys, tb_gradflow\n"
        "tb_gradflow.check_gradients(lambda v: np.sum(v**2), (np.ones(3),), lambda v: 2 * v).assert_correct()\n"
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], env=environment(tensorflow=False), check=True)


SLOPES = np.random.default_rng(3).normal(size=(40, 5))
POINTS = np.random.default_rng(4).normal(size=(40, 5))
PERMUTED = np.random.default_rng(5).permutation(40)


def cubes(rows: int) -> Callable[[Any], Any]:
    return lambda w: np.sum(SLOPES[:rows] * w**3)


@pytest.mark.parametrize(
    ("rows", "wrong", "said"),
    [
        (4, lambda right: right[[2, 0, 1, 3]], "3 of its 4 entries along axis 0"),
        (4, lambda right: right[:, [1, 0, 2, 3, 4]], "1 belongs at 0, 0 belongs at 1"),
        (4, lambda right: np.roll(right, 1, axis=0), "4 of its 4 entries along axis 0"),
        (40, lambda right: right[PERMUTED], "and so on"),
    ],
)
def test_rows_and_columns_in_other_places_are_named(rows: int, wrong: Callable[[Any], Any], said: str) -> None:
    check = tb_gradflow.check_gradients(
        cubes(rows), [POINTS[:rows]], lambda w: wrong(3 * SLOPES[: len(w)] * w**2)
    ).arguments["0"]

    assert check.verdict == "order", str(check)
    assert said in check.message


def test_numbers_that_are_about_as_large_are_not_said_to_be_the_same_in_another_order() -> None:
    check = tb_gradflow.check_gradients(
        lambda w: np.float32(np.sum(w.astype(np.float32) ** 2)),
        [POINTS.astype(np.float32)[:8]],
        lambda w: 2 * np.random.default_rng(6).normal(size=w.shape),
    )

    assert check.arguments["0"].verdict == "differs", str(check)
