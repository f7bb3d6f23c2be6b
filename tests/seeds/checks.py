"""The seeds' gradients that somebody wrote, or took by finite differences, typed in as they stand, and what
`check_gradients` says of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

import tb_gradflow
from tb_gradflow.gradcheck.report import GradientsCheck
from tests.seeds.programs import custom_floor, detour

Array = Any


@dataclass(frozen=True)
class CheckProgram:
    """A function of a question with a gradient, and what is true of it.

    Attributes:
        name: The question's number and what the program is.
        check: Checks it.
        verdicts: Of each argument.
        correct: Whether nothing is wrong.
        says: What is said, among other things.
    """

    name: str
    check: Callable[[], GradientsCheck]
    verdicts: tuple[str, ...]
    correct: bool
    says: str = ""


# Question 1: `tf.test.compute_gradient_error` of a floor.


def floor_check(floor: Callable[[Any], Any], value: float) -> Callable[[], GradientsCheck]:
    A, B = 50, 7
    shape = [A, B]
    f = np.full(shape, value, dtype=np.float32)
    return lambda: tb_gradflow.check_gradients(lambda vif: tf.reduce_sum(floor(vif)), (tf.constant(f),))


# Question 2: gradient descent by finite differences. The solver is not shown there: four bars in a row that are pulled.

targetRes = -0.1


def FEA(thetas: Any, fem: Any) -> float:
    """Displacement of the free end, of four bars with one modulus and areas of their own: the solver that the question
    keeps to itself, with its first output, -0.070309."""
    modulus, areas = thetas[0], np.asarray(thetas[1:])
    stiffness = np.zeros((5, 5))
    for bar, area in enumerate(areas):
        stiffness[bar : bar + 2, bar : bar + 2] += modulus * area * np.array([[1.0, -1.0], [-1.0, 1.0]])
    pull = np.array([0.0, 0.0, 0.0, fem])
    return float(np.linalg.solve(stiffness[1:, 1:], pull)[-1])


fem = -0.070309 * 1000 / 4


def LF(thetas: Any) -> float:
    return (FEA(thetas, fem) - targetRes) ** 2 / 2


def FDM(thetas: Any, LF: Callable[[Any], float]) -> list[float]:
    fdm = []
    for i, _theta in enumerate(thetas):
        h = 0.1
        thetas_p_h = []
        for t in thetas:
            thetas_p_h.append(t)
        thetas_p_h[i] += h
        thetas_m_h = []
        for t in thetas:
            thetas_m_h.append(t)
        thetas_m_h[i] -= h
        grad = (LF(thetas_p_h) - LF(thetas_m_h)) / (2 * h)
        fdm.append(grad)
    return fdm


def of_first(theta: Any) -> float:
    """ "For now, I am only running the algorithm on thetas[0]"."""
    return LF([float(np.squeeze(theta)), 1.0, 1.0, 1.0, 1.0])


# Question 2: a network in NumPy, translated from MATLAB.


def sigmoid(z: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-z))


def sigmoidGradient(z: Array) -> Array:
    return sigmoid(z) * (1 - sigmoid(z))


def nnCost(
    nn_params: Array,
    X: Array,
    y: Array,
    lambda_: float | None,
    input_layer_size: int,
    hidden_layer_size: int,
    num_labels: int,
    order: str = "C",
    fixed: bool = False,
) -> tuple[Any, Array]:
    # reshape parameter/weight vectors to suit network size
    Theta1 = np.reshape(
        nn_params[: hidden_layer_size * (input_layer_size + 1)], (hidden_layer_size, (input_layer_size + 1))
    )
    Theta2 = np.reshape(
        nn_params[(hidden_layer_size * (input_layer_size + 1)) :], (num_labels, (hidden_layer_size + 1))
    )

    if lambda_ is None:
        lambda_ = 0

    # grab number of observations
    m = X.shape[0]

    # init variables we must return
    cost = 0
    Theta1_grad = np.zeros(Theta1.shape)
    Theta2_grad = np.zeros(Theta2.shape)

    # one-hot encode the vector y; `pd.get_dummies` does it there
    y_mtx = np.eye(num_labels)[y.ravel().astype(int) - 1]

    ones = np.ones((m, 1))
    X = np.hstack((ones, X))

    # layer 1
    a1 = X
    z2 = Theta1 @ a1.T
    # layer 2
    ones_l2 = np.ones((y.shape[0], 1))
    a2 = np.hstack((ones_l2, sigmoid(z2.T)))
    z3 = Theta2 @ a2.T
    # layer 3
    a3 = sigmoid(z3)

    if fixed:
        reg_term = (lambda_ / (2 * m)) * (np.sum(Theta1[:, 1:] ** 2) + np.sum(Theta2[:, 1:] ** 2))
    else:
        reg_term = (lambda_ / (2 * m)) * (
            np.sum(np.sum(np.multiply(Theta1, Theta1)))
            + np.sum(np.sum(np.multiply(Theta2, Theta2)))
            - np.subtract((Theta1[:, 0].T @ Theta1[:, 0]), (Theta2[:, 0].T @ Theta2[:, 0]))
        )
    cost = (1 / m) * np.sum((-np.log(a3).T * (y_mtx) - np.log(1 - a3).T * (1 - y_mtx))) + reg_term

    # BACKPROPAGATION
    # δ3 equals the difference between a3 and the y_matrix
    d3 = a3 - y_mtx.T
    # δ2 equals the product of δ3 and Θ2 (ignoring the Θ2 bias units) multiplied element-wise by the g′() of z2
    # (computed back in Step 2).
    d2 = Theta2[:, 1:].T @ d3 * sigmoidGradient(z2)
    # Δ1 equals the product of δ2 and a1.
    Delta1 = d2 @ a1
    Delta1 /= m
    # Δ2 equals the product of δ3 and a2.
    Delta2 = d3 @ a2
    Delta2 /= m

    reg_term1 = (lambda_ / m) * np.append(np.zeros((Theta1.shape[0], 1)), Theta1[:, 1:], axis=1)
    reg_term2 = (lambda_ / m) * np.append(np.zeros((Theta2.shape[0], 1)), Theta2[:, 1:], axis=1)

    Theta1_grad = Delta1 + reg_term1
    Theta2_grad = Delta2 + reg_term2
    grad = np.append(Theta1_grad.ravel(order=order), Theta2_grad.ravel(order=order))
    return cost, grad


def debugInitializeWeights(fan_out: int, fan_in: int) -> Array:
    W = np.zeros((fan_out, 1 + fan_in))
    # Initialize W using "sin", this ensures that the values in W are of similar scale;
    # this will be useful for debugging
    W = np.sin(range(1, np.size(W) + 1)) / 10
    return W.reshape(fan_out, fan_in + 1)


def computeNumericalGradient(J: Callable[[Array], tuple[Any, Array]], nn_params: Array) -> Array:
    numgrad = np.zeros(nn_params.shape)
    perturb = np.zeros(nn_params.shape)
    e = 0.0001
    for i in range(np.size(nn_params)):
        # Set perturbation (i.e., noise) vector
        perturb[i] = e
        # run cost fxn w/ noise added to and subtracted from parameters theta in nn_params
        cost1, _grad1 = J(nn_params - perturb)
        cost2, _grad2 = J(nn_params + perturb)
        # record the difference in cost function ouputs; this is the numerical gradient
        numgrad[i] = (cost2 - cost1) / (2 * e)
        perturb[i] = 0
    return numgrad


def network(lambda_: float | None, **options: Any) -> tuple[Callable[[Array], tuple[Any, Array]], Array]:
    """What `checkNNGradients` makes: the cost with its gradient, and a point."""
    input_layer_size = 3
    hidden_layer_size = 5
    num_labels = 3
    m = 5

    # generate 'random' test data
    Theta1 = debugInitializeWeights(hidden_layer_size, input_layer_size)
    Theta2 = debugInitializeWeights(num_labels, hidden_layer_size)

    # reusing debugInitializeWeights to generate X
    X = debugInitializeWeights(m, input_layer_size - 1)
    y = np.ones(m) + np.remainder(np.arange(m), num_labels)

    # unroll parameters
    nn_params = np.append(Theta1.ravel(), Theta2.ravel())

    def costFunc(p: Array) -> tuple[Any, Array]:
        return nnCost(p, X, y, lambda_, input_layer_size, hidden_layer_size, num_labels, **options)

    return costFunc, nn_params


def network_check(lambda_: float | None, **options: Any) -> Callable[[], GradientsCheck]:
    costFunc, nn_params = network(lambda_, **options)
    return lambda: tb_gradflow.check_gradients(costFunc, (nn_params,))


def numerical_check() -> GradientsCheck:
    costFunc, nn_params = network(3.0)
    return tb_gradflow.check_gradients(
        lambda p: costFunc(p)[0], (nn_params,), lambda p: computeNumericalGradient(costFunc, p)
    )


# Question 2: sigmoid, normalised sigmoid, softmax. Each is weighed, so that the loss is one number.

x = np.array([1.0, 2.0, 3.0])
measure = np.array([0.01, 0.2, 0.5, 0.6, 0.7, 1.0, 2.5, 5.0, 50.0, 5000.0])


def get_statistics(x: Array) -> tuple[Any, Any, Any]:
    n = float(len(x))
    m = x.sum() / n
    s2 = sum((x - m) ** 2) / (n - 1.0)
    s = s2**0.5
    return m, s2, s


def first_equation(x: Array) -> Array:
    m, _s, s2 = get_statistics(x)
    return 1 / (1 + np.exp(-(x - m) / s2))


def sn(x: Array) -> Array:
    numerator = x - np.mean(x)
    denominator = np.std(x)
    fraction = numerator / denominator
    return 1.0 / (1.0 + np.exp(-fraction))


def softmax(x: Array) -> Array:
    exp_x = np.exp(x)
    return exp_x / exp_x.sum()


def weighed(function: Callable[[Array], Array]) -> Callable[[Array], Any]:
    return lambda x: np.sum(function(x) * np.arange(1.0, len(x) + 1))


def slope_alone(function: Callable[[Array], Array], scale: Callable[[Array], Any]) -> Callable[[Array], Array]:
    """`s * (1 - s)`, as of the plain sigmoid: what normalises depends on every element too, and is left out."""
    return lambda x: np.arange(1.0, len(x) + 1) * function(x) * (1 - function(x)) / scale(x)


def normalised_slope(function: Callable[[Array], Array], freedom: int) -> Callable[[Array], Array]:
    def gradient(x: Array) -> Array:
        spread = np.std(x, ddof=freedom)
        arriving = np.arange(1.0, len(x) + 1) * function(x) * (1 - function(x))
        fraction = (x - np.mean(x)) / spread
        through_spread = fraction * np.sum(arriving * fraction) / (len(x) - freedom)
        return (arriving - np.mean(arriving) - through_spread) / spread

    return gradient


def softmax_slope(x: Array) -> Array:
    weights, shares = np.arange(1.0, len(x) + 1), softmax(x)
    return shares * (weights - np.sum(weights * shares))


def own(function: Callable[[Array], Array], at: Array, gradient: Callable[[Array], Array]) -> Callable[[], Any]:
    return lambda: tb_gradflow.check_gradients(weighed(function), (at,), gradient)


def one(x: Array) -> Any:
    return np.float64(1.0)


CHECKS = (
    CheckProgram("1 floor by a detour, at ones", floor_check(detour, 1.0), ("kink",), False, "500"),
    CheckProgram("1 floor by a detour, between", floor_check(detour, 1.5), ("agrees",), True),
    CheckProgram(
        "1 floor with a custom gradient, at ones",
        floor_check(custom_floor, 1.0),
        ("straight_through",),
        True,
        "500",
    ),
    CheckProgram(
        "1 floor with a custom gradient, between", floor_check(custom_floor, 1.5), ("straight_through",), True
    ),
    CheckProgram(
        "2 gradient descent by finite differences, thetas[0]",
        lambda: tb_gradflow.check_gradients(of_first, (1000.0,), step=0.1, learning_rate=10000000),
        ("agrees",),
        True,
    ),
    CheckProgram(
        "2 gradient descent by finite differences, all thetas",
        lambda: tb_gradflow.check_gradients(
            LF, ([1000.0, 1.0, 1.0, 1.0, 1.0],), lambda thetas: FDM(thetas, LF), learning_rate=10000000
        ),
        ("step",),
        False,
        "diverges",
    ),
    CheckProgram(
        "2 gradient descent by finite differences, other thetas",
        lambda: tb_gradflow.check_gradients(of_first, (1.0,), step=0.1, learning_rate=10000000),
        ("step",),
        False,
        "chance, not convergence",
    ),
    CheckProgram("2 nnCost, not regularised", network_check(None), ("agrees",), True),
    CheckProgram("2 nnCost", network_check(3.0), ("differs",), False, "20, 26, 32"),
    CheckProgram("2 nnCost, regularisation fixed", network_check(3.0, fixed=True), ("agrees",), True),
    CheckProgram("2 nnCost, Fortran order", network_check(None, order="F"), ("order",), False, "Fortran order"),
    CheckProgram("2 computeNumericalGradient", numerical_check, ("agrees",), True),
    CheckProgram("2 sigmoid", own(sigmoid, x, slope_alone(sigmoid, one)), ("agrees",), True),
    CheckProgram("2 sigmoid of outliers", own(sigmoid, measure, slope_alone(sigmoid, one)), ("agrees",), True),
    CheckProgram(
        "2 first equation, slope of a sigmoid",
        own(first_equation, x, slope_alone(first_equation, lambda x: np.std(x, ddof=1))),
        ("differs",),
        False,
    ),
    CheckProgram("2 first equation", own(first_equation, x, normalised_slope(first_equation, 1)), ("agrees",), True),
    CheckProgram(
        "2 normalised sigmoid of outliers, slope of a sigmoid",
        own(sn, measure, slope_alone(sn, np.std)),
        ("differs",),
        False,
    ),
    CheckProgram("2 normalised sigmoid of outliers", own(sn, measure, normalised_slope(sn, 0)), ("agrees",), True),
    CheckProgram("2 softmax, slope of a sigmoid", own(softmax, x, slope_alone(softmax, one)), ("differs",), False),
    CheckProgram("2 softmax", own(softmax, x, softmax_slope), ("agrees",), True),
)
