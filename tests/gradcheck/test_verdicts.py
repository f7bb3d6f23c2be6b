"""What is said of a gradient and why: of problems as they are made from functions of tensors and of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tb_gradflow
from tb_gradflow.gradcheck.check import check
from tb_gradflow.gradcheck.problem import Argument, Problem
from tb_gradflow.gradcheck.report import ArgumentCheck

EPSILON = float(np.finfo(np.float64).eps)
POINT = np.array([0.3, 1.7, -2.2])
RNG = np.random.default_rng(5)


def judged(function: Callable[[Any], Any], point: Any, gradient: Any, **known: Any) -> ArgumentCheck:
    """The verdict on a gradient at a point; `known` is what the ops of a function of tensors say about it."""
    slopes = None if gradient is None else np.asarray(gradient, np.float64)
    argument = Argument("0", np.asarray(point, np.float64), slopes, EPSILON, **known)
    return check(Problem(lambda points: float(function(points[0])), [argument]), None, None, None).arguments["0"]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda v: np.sum(v**2), "depends on it: its slope is -4.4 (at [2])"),
        (lambda v: np.sum(np.floor(v)), "changes with it only in jumps, and is constant in between"),
        (lambda v: 3.0, "did not change with it in any of the steps tried"),
    ],
    ids=["smooth", "stepped", "constant"],
)
def test_without_a_gradient_it_is_said_whether_the_function_depends_on_the_argument(
    function: Callable[[Any], Any], said: str
) -> None:
    found = judged(function, POINT, None, missing="Why: tf.floor has no gradient.")

    assert (found.verdict, found.correct, found.known) == ("disconnected", False, True)
    assert said in found.message
    assert found.message.startswith("There is no gradient: it is None, not zero. ")
    assert found.message.endswith(" Why: tf.floor has no gradient.")


def test_a_slope_along_many_elements_has_no_place() -> None:
    found = judged(lambda v: np.sum(v**2), np.ones(5000), None)

    assert found.verdict == "disconnected"
    assert "its slope is" in found.message
    assert "(at" not in found.message


@pytest.mark.parametrize(
    ("factor", "said"),
    [(-1.0, "nothing to fix if it reverses the gradient on purpose"), (3.0, "scales or stops a part of it on purpose")],
)
def test_a_multiple_that_a_custom_gradient_may_mean_is_said_with_its_name(factor: float, said: str) -> None:
    found = judged(lambda v: np.sum(v**2), POINT, factor * 2 * POINT, replaced="`reversed` has a custom gradient")

    assert (found.verdict, found.factor) == ("factor", factor)
    assert said in found.message
    assert "`reversed` has a custom gradient" in found.message


def test_a_wrong_gradient_beside_a_custom_one_names_that() -> None:
    found = judged(lambda v: np.sum(v**2), POINT, [1.0, 7.0, -5.0], replaced="`clipped` has a custom gradient")

    assert found.verdict == "differs"
    assert found.message.endswith("`clipped` has a custom gradient, which finite differences do not include.")


@pytest.mark.parametrize(
    ("multiple", "factor", "said"),
    [
        (lambda v: 2 * v, 3.0, "3 is a dimension of this argument: a sum is used instead of a mean"),
        (lambda v: 2 * v / 3 / 3, 1 / 3, "3 is a dimension of this argument: a mean is used instead of a sum"),
        (lambda v: 4 * v / 3, 2.0, "Check the factor of 2"),
        (lambda v: 2 * 7 * v / 3, 7.0, "If that is the number of rows, a sum"),
        (lambda v: 2 * v / 3 / 7, 1 / 7, "If 7 is the number of rows, a mean"),
        (lambda v: 2 * np.pi * v / 3, np.pi, "times the derivative, everywhere."),
    ],
)
def test_a_multiple_is_explained_where_it_is_a_known_number(
    multiple: Callable[[Any], Any], factor: float, said: str
) -> None:
    found = judged(lambda v: np.mean(v**2), POINT, multiple(POINT))

    assert found.verdict == "factor"
    assert found.factor == pytest.approx(factor, rel=1e-6)
    assert said in found.message


def test_a_gradient_of_zero_is_no_multiple_of_the_derivative() -> None:
    assert judged(lambda v: np.sum(v**2), POINT, np.zeros(3)).verdict == "differs"


def test_a_single_number_is_no_multiple_unless_it_is_a_telling_one() -> None:
    assert judged(lambda v: v[0] ** 2, [3.0], [-6.0]).factor == -1
    assert judged(lambda v: v[0] ** 2, [3.0], [7.3]).verdict == "differs"


def test_a_gradient_that_is_not_finite_is_counted() -> None:
    found = judged(lambda v: np.sum(v**2), POINT, [np.nan, np.inf, 1.0])

    assert (found.verdict, found.correct) == ("differs", False)
    assert found.message == "The gradient is not finite in 2 elements."


class TestOfAFunctionThatRounds:
    """It is known from its ops that it rounds, and has a gradient all the same."""

    def test_a_slope_between_its_steps_is_a_replacement(self) -> None:
        found = judged(lambda v: np.sum(np.sign(v)), POINT, np.ones(3), rounds=True)

        assert (found.verdict, found.correct) == ("straight_through", True)

    def test_a_slope_at_a_jump_is_a_replacement_and_a_difference_there_is_its_height(self) -> None:
        found = judged(lambda v: np.sum(np.floor(v)), [2.0, 0.5], [1.0, 1.0], rounds=True)

        assert found.verdict == "straight_through"
        assert "A central difference gives 1 / 2h here, 500 at h = 0.001." in found.message

    def test_a_smooth_part_beside_it_is_told_apart(self) -> None:
        """A codebook: the distance to the nearest entry has a slope, and the entry is copied straight through."""
        codes = np.array([0.0, 1.0, 2.0])

        def nearest(v: Any) -> Any:
            return codes[np.argmin(np.abs(v[:, None] - codes), axis=1)]

        point = np.array([0.2, 1.9])
        found = judged(
            lambda v: np.sum(3 * nearest(v) + (v - nearest(v)) ** 2),
            point,
            3 + 2 * (point - nearest(point)),
            rounds=True,
        )

        assert (found.verdict, found.correct) == ("straight_through", True)
        assert "The function jumps" in found.message
        assert "the smooth part could not be checked" in found.message

    def test_what_is_wrong_and_does_not_jump_is_wrong(self) -> None:
        assert judged(lambda v: np.sum(v**2), POINT, [1.0, 5.0, 2.0], rounds=True).verdict == "differs"

    def test_a_function_that_is_not_finite_farther_away_does_not_jump_there(self) -> None:
        found = judged(lambda v: np.sum(np.sqrt(v)), [0.1, 0.2], [3.0, 1.0], rounds=True)

        assert found.verdict == "differs"


def test_a_jump_at_the_point_has_no_derivative() -> None:
    found = judged(lambda v: np.sum(np.where(v >= 1, v + 4, v)), [1.0, 0.2], [1.0, 1.0])

    assert (found.verdict, found.correct) == ("kink", False)
    assert "The function jumps here (at [0]), by 4: there is no derivative" in found.message
    assert found.message.endswith("Compare at a point next to the jump. The other 1 agree.")


def triangle(a: Any) -> Any:
    """As a Cholesky decomposition, it reads the lower half of a matrix."""
    return np.sum(np.log(np.diag(np.linalg.cholesky(a))))


MATRIX = RNG.normal(size=(3, 3))
SYMMETRIC = MATRIX @ MATRIX.T + np.eye(3)


def test_a_symmetric_gradient_of_one_half_of_a_matrix_is_right_for_both() -> None:
    found = judged(triangle, SYMMETRIC, 0.5 * np.linalg.inv(SYMMETRIC))

    assert (found.verdict, found.correct) == ("agrees", True)
    assert "symmetric" in found.message


@pytest.mark.parametrize("factor", [0.4, 1.5])
def test_a_symmetric_gradient_that_is_wrong_for_both_is_wrong(factor: float) -> None:
    assert not judged(triangle, SYMMETRIC, factor * np.linalg.inv(SYMMETRIC)).correct


def test_a_gradient_of_another_shape_may_be_the_right_one_in_a_wrong_order() -> None:
    point = RNG.normal(size=(2, 3))
    right = 3 * point**2

    reshaped = judged(lambda v: np.sum(v**3), point, right.reshape(3, 2))
    transposed = judged(lambda v: np.sum(v**3), point, right.T)
    other = judged(lambda v: np.sum(v**3), point, RNG.normal(size=(3, 2)))
    too_few = judged(lambda v: np.sum(v**3), point, right[0])

    assert (reshaped.verdict, "Reshaped, it matches" in reshaped.message) == ("order", True)
    assert (transposed.verdict, "it is transposed" in transposed.message) == ("order", True)
    assert (other.verdict, too_few.verdict) == ("differs", "differs")
    assert other.message == "The gradient has the shape (3, 2), but the argument has the shape (2, 3)."


def test_parts_of_a_flat_gradient_in_another_order_are_named() -> None:
    point = RNG.normal(size=9)
    right = 2 * point

    found = judged(lambda v: np.sum(v**2), point, [*right[:4][::-1], *right[4:]])

    assert found.verdict == "order"
    assert "elements 0 to 3" in found.message or "in other positions" in found.message


def test_a_wrong_gradient_of_many_elements_is_told_by_directions() -> None:
    point = RNG.normal(size=3000)
    gradient = 2 * point + RNG.normal(size=3000)

    found = judged(lambda v: np.sum(v**2), point, gradient)

    assert (found.verdict, found.correct) == ("differs", False)
    assert "does not match the derivative along" in found.message
    assert "directions" in found.message


def test_many_wrong_elements_are_counted() -> None:
    point = np.arange(1.0, 13.0)
    gradient = 2 * point * np.where(np.arange(12) < 11, np.linspace(1.1, 3.0, 12), 1.0)

    found = judged(lambda v: np.sum(v**2), point, gradient)

    assert "11 of 12 elements differ, at the flat indices 0, 1, 2, 3, 4, 5, 6, 7 and 3 more" in found.message
    assert "The other 1 agree" in found.message


class Layer(NamedTuple):
    kernel: Any
    bias: Any


def test_arrays_are_found_in_tuples_with_names_in_tuples_and_as_numbers_of_numpy() -> None:
    layer = Layer(np.array([1.0, 2.0]), np.float32(0.5))

    found = tb_gradflow.check_gradients(
        lambda p, q: np.sum(p.kernel**2) + float(p.bias) ** 2 + q[1] * q[0].sum(),
        (layer, (np.array([1.0, 3.0]), 2.0)),
        lambda p, q: (Layer(2 * p.kernel, 2 * p.bias), (np.full(2, q[1]), q[0].sum())),
    )

    assert {name: each.verdict for name, each in found.arguments.items()} == {
        "0[0]": "agrees",
        "0[1]": "agrees",
        "1[0]": "agrees",
        "1[1]": "agrees",
    }


def test_a_gradient_function_may_return_a_tuple_of_one() -> None:
    tb_gradflow.check_gradients(lambda v: np.sum(v**2), (POINT,), lambda v: (2 * v,)).assert_correct()


@pytest.mark.parametrize(
    ("function", "gradient", "point", "rate", "said"),
    [
        (lambda v: np.sum(np.exp(v)), np.exp, [3.0], 1e4, "is chance, not convergence"),
        (
            lambda v: np.sum(v**4),
            lambda v: 4 * v**3,
            [10.0],
            1.0,
            "gradient descent diverges: the value goes from 1e+04",
        ),
        (lambda v: np.sum(v**2), lambda v: 2 * v, [1.0, 2.0], 0.1, ""),
        (lambda v: np.sum(np.cos(v)), lambda v: -np.sin(v), [3.0], 1e6, "far beyond the range in which its slope"),
        (lambda v: np.sum(v**2), lambda v: 2 * v, [0.0], 0.1, ""),
    ],
    ids=["a leap to where it is flat", "to infinity", "a good rate", "a leap by chance", "at the minimum"],
)
def test_a_descent_with_the_rate_of_a_training_is_judged(
    function: Callable[[Any], Any], gradient: Callable[[Any], Any], point: list[float], rate: float, said: str
) -> None:
    found = tb_gradflow.check_gradients(function, (np.array(point),), gradient, learning_rate=rate)

    assert said in str(found)
    assert ("learning rate" in str(found)) == bool(said)
