"""Gradients that are right, of functions that make finite differences hard: none may be called wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tb_gradflow

RNG = np.random.default_rng(11)
ROWS, ANSWERS, WEIGHTS, MATRIX = (RNG.normal(size=size) for size in ((30, 5), 30, 5, (4, 4)))
SYMMETRIC = MATRIX @ MATRIX.T + np.eye(4)
LOGITS = RNG.normal(size=9)
SCALES = np.array([1e12, 1.0, 1e-12])
LEAST_SQUARES = np.linalg.lstsq(ROWS, ANSWERS, rcond=None)[0]

Case = tuple[Callable[..., Any], Any, Callable[..., Any]]


def log_sum_exp(z: Any) -> Any:
    return z.max() + np.log(np.exp(z - z.max()).sum())


def shares(z: Any) -> Any:
    return np.exp(z - z.max()) / np.exp(z - z.max()).sum()


def huber(d: Any) -> Any:
    return np.sum(np.where(np.abs(d) < 1, 0.5 * d * d, np.abs(d) - 0.5))


def logistic(w: Any) -> Any:
    return np.mean(np.log1p(np.exp(-ANSWERS * (ROWS @ w))))


def its_slope(w: Any) -> Any:
    return -ROWS.T @ (ANSWERS / (1 + np.exp(ANSWERS * (ROWS @ w)))) / 30


def largest_of_two(v: Any) -> Any:
    pairs = v.reshape(-1, 2)
    return np.where(pairs == pairs.max(1, keepdims=True), 2 * pairs, 0).ravel()


OF_NUMPY: dict[str, Case] = {
    "log-sum-exp": (log_sum_exp, 5 * LOGITS, shares),
    "a steep log-sum-exp": (log_sum_exp, 200 * LOGITS, shares),
    "an exponential at 30 and 50": (lambda v: np.sum(np.exp(v)), np.array([30.0, 50.0, -20.0]), np.exp),
    "an exponential at 300": (np.exp, 300.0, np.exp),
    "saturated sigmoids": (
        lambda v: np.sum(1 / (1 + np.exp(-v))),
        np.array([30.0, -30.0, 1.0]),
        lambda v: np.exp(-np.abs(v)) / (1 + np.exp(-np.abs(v))) ** 2,
    ),
    "a fast wave": (lambda v: np.sum(np.sin(1e3 * v)), LOGITS[:4], lambda v: 1e3 * np.cos(1e3 * v)),
    "a very fast wave": (lambda v: np.sum(np.sin(1e5 * v)), LOGITS[:4], lambda v: 1e5 * np.cos(1e5 * v)),
    "elements of 1e-12 and 1e12": (
        lambda v: np.sum(np.sin(v * SCALES)),
        1 / SCALES,
        lambda v: np.cos(v * SCALES) * SCALES,
    ),
    "zeros beside 1e-8 and 1e8": (lambda v: np.sum(v**2 + v), np.array([0, 1e-8, 1e8, 0]), lambda v: 2 * v + 1),
    "a large constant": (lambda v: 1e8 + np.sum(v**3), WEIGHTS + 2, lambda v: 3 * v**2),
    "a constant that hides most digits": (lambda v: 1e12 + np.sum(np.sin(v)), np.array([0.5, 1.0]), np.cos),
    "a floor between integers": (lambda v: np.sum(np.floor(v)), np.array([2.3, 3.6]), np.zeros_like),
    "a constant": (lambda v: 3.0, WEIGHTS, np.zeros_like),
    "an unused element": (lambda v: v[0] ** 2, np.array([1.0, 2.0]), lambda v: [2 * v[0], 0.0]),
    "a minimum": (lambda v: np.sum((v - 1) ** 2), np.ones(4), lambda v: 2 * (v - 1)),
    "a minimum of least squares": (
        lambda w: np.mean((ROWS @ w - ANSWERS) ** 2),
        LEAST_SQUARES,
        lambda w: 2 * ROWS.T @ (ROWS @ w - ANSWERS) / 30,
    ),
    "a saddle": (lambda v: v[0] * v[1], np.zeros(2), lambda v: v[::-1]),
    "a cube at zero": (lambda v: np.sum(v**3), np.zeros(3), lambda v: 3 * v**2),
    "Huber's loss where its parts meet": (huber, np.array([1.0, -1.0]), lambda d: np.clip(d, -1, 1)),
    "logistic regression": (logistic, WEIGHTS, its_slope),
    "a layer with ReLU": (lambda w: np.sum(np.maximum(0, ROWS @ w)), WEIGHTS, lambda w: ROWS.T @ (ROWS @ w > 0)),
    "a kink nearby": (lambda v: np.sum(np.maximum(v, 0)), np.array([1e-4, 1.0, -1e-3]), lambda v: (v > 0) * 1.0),
    "a jump nearby": (lambda v: np.sum(np.where(v >= 1, v + 1, v)), np.array([1 - 1e-6, 3.0]), np.ones_like),
    "max pooling": (lambda v: np.sum(v.reshape(-1, 2).max(1) ** 2), RNG.normal(size=8), largest_of_two),
    "a determinant": (lambda a: np.linalg.slogdet(a)[1], SYMMETRIC, lambda a: np.linalg.inv(a).T),
    "a root that raises nearby": (lambda v: math.sqrt(v[0]), np.array([1e-9]), lambda v: [0.5 / math.sqrt(v[0])]),
    "a result of shape (1,)": (lambda v: np.sum(v**2, keepdims=True), WEIGHTS, lambda v: 2 * v),
    "NumPy's generator": (lambda v: v @ np.random.normal(size=5), WEIGHTS, lambda v: np.random.normal(size=5)),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_NUMPY)
def test_a_right_gradient_of_a_numpy_function_agrees(name: str) -> None:
    function, point, gradient = OF_NUMPY[name]

    check = tb_gradflow.check_gradients(function, (point,), gradient)

    assert check.arguments["0"].verdict == "agrees", str(check)
    check.assert_correct()
