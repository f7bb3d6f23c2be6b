"""A check ends in good time, however slow the function is, and says what it left out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tb_gradflow
from tb_gradflow.errors import IncorrectGradients
from tb_gradflow.gradcheck import problem

WEIGHTS = np.linspace(0.5, 2.0, 40)


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def set_to(seconds: float = 1e9, evaluations: int = 10**9) -> None:
        monkeypatch.setattr(problem, "MOST_SECONDS", seconds)
        monkeypatch.setattr(problem, "MOST_EVALUATIONS", evaluations)

    return set_to


def loss(weights: Any) -> float:
    return float(np.sum(np.sin(weights)))


def slow(weights: Any) -> float:
    time.sleep(0.01)
    return loss(weights)


def test_a_fast_function_is_compared_in_all_elements() -> None:
    check = tb_gradflow.check_gradients(loss, [WEIGHTS], np.cos)

    assert check.arguments["0"].compared == 40
    assert not check.arguments["0"].is_cut_short
    assert "slow" not in str(check)


def test_a_slow_function_is_compared_along_directions(bounds: Callable[..., None]) -> None:
    """In the time for forty elements one by one, directions in which all of them move tell as much."""
    bounds(seconds=2.0)

    check = tb_gradflow.check_gradients(slow, [WEIGHTS], np.cos)

    assert check.arguments["0"].verdict == "agrees"
    assert 0 < check.arguments["0"].compared < 40
    assert "The function is slow" in str(check)
    assert "argument 0 was compared along fewer directions" in str(check)
    assert check.evaluations < 2.0 / 0.01 + 1


def test_a_wrong_gradient_of_a_slow_function_is_found(bounds: Callable[..., None]) -> None:
    bounds(seconds=1.0)

    check = tb_gradflow.check_gradients(slow, [WEIGHTS], lambda weights: -np.cos(weights))

    assert not check.correct
    assert check.arguments["0"].known


def test_each_argument_has_its_share(bounds: Callable[..., None]) -> None:
    bounds(evaluations=120)

    check = tb_gradflow.check_gradients(
        lambda first, second: loss(first) + loss(second),
        [WEIGHTS, WEIGHTS + 1],
        lambda first, second: (np.cos(first), np.cos(second)),
    )

    assert check.evaluations <= 120
    assert [each.compared > 0 for each in check.arguments.values()] == [True, True]
    assert "argument 0 and argument 1 were compared along fewer directions" in str(check)


def test_what_could_not_be_compared_at_all_is_not_called_right(bounds: Callable[..., None]) -> None:
    bounds(evaluations=5)

    check = tb_gradflow.check_gradients(loss, [WEIGHTS], np.cos)

    assert (check.correct, check.arguments["0"].known) == (False, False)
    assert "not even one direction" in str(check)
    with pytest.raises(IncorrectGradients):
        check.assert_correct()


def test_a_descent_that_would_take_too_long_is_said_to_be_unknown(bounds: Callable[..., None]) -> None:
    bounds(evaluations=300)

    check = tb_gradflow.check_gradients(loss, [np.linspace(0, 1, 200)], step=1e-5, learning_rate=0.1)

    assert check.evaluations <= 300
    assert "Whether a learning rate of 0.1 is too high is not known" in str(check)


def test_a_function_of_many_numbers_stays_within_the_bound() -> None:
    """As with the step of a training that differences all of them one by one."""
    point = np.random.default_rng(0).normal(size=200_000)
    check = tb_gradflow.check_gradients(lambda x: float(np.mean(x**2)), [point], lambda x: 2 * x / x.size)

    assert check.correct
    assert check.evaluations < problem.MOST_EVALUATIONS
