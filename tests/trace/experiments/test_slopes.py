"""A variable is moved a little: does the loss change as the gradient says?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.analyse.experiments.slopes import disagree
from tb_gradflow.record.experiments import Slope
from tb_gradflow.record.report import Evidence

X = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")


def slopes_of(report: Any) -> list[Evidence]:
    return [each for finding in report.findings for each in finding.evidence if each.kind == "slope"]


@tf.custom_gradient
def doubled(x: Any) -> Any:
    return tf.tanh(x), lambda upstream: 2.0 * upstream * (1.0 - tf.tanh(x) ** 2)


@tf.custom_gradient
def right(x: Any) -> Any:
    return tf.tanh(x), lambda upstream: upstream * (1.0 - tf.tanh(x) ** 2)


def variables() -> tuple[Any, Any]:
    weight = tf.Variable(tf.reshape(tf.linspace(-0.5, 0.7, 12), (4, 3)), name="weight")
    return weight, tf.Variable([[0.5], [-1.0], [2.0]], name="head")


def test_a_custom_gradient_that_is_twice_the_derivative_is_held_against_the_loss() -> None:
    weight, head = variables()

    def loss(x: Any) -> Any:
        return tf.reduce_mean((doubled(x @ weight) @ head - 1.0) ** 2)

    report = tb_gradflow.explain(loss, args=(X,), variables=[weight, head])

    [finding] = report.findings
    [found] = slopes_of(report)
    assert (finding.cause, found.of, found.on) == ("custom_gradient_wrong", "weight", "loss")
    with tf.GradientTape() as tape:
        value = loss(X)
    gradient = tape.gradient(value, weight).numpy()
    amount = 0.01 * 0.7
    move = gradient / np.max(np.abs(gradient)) * amount
    before = weight.numpy()
    weight.assign(before + move)
    ahead = float(loss(X))
    weight.assign(before - move)
    behind = float(loss(X))
    assert found.change == pytest.approx((ahead - behind) / 2, rel=1e-3)
    assert found.gradient == pytest.approx(float(np.sum(gradient * move)) / amount, rel=1e-4)
    assert found.change is not None
    assert 2 * found.change == pytest.approx(float(np.sum(gradient * move)), rel=0.01)
    assert found.text.startswith("Moving the elements of `weight` along the gradient, by up to 0.007, changes the loss")
    assert found.text in str(report).replace("\n       ", " ")


def test_a_custom_gradient_that_is_right_says_nothing() -> None:
    weight, head = variables()

    report = tb_gradflow.explain(
        lambda x: tf.reduce_mean((right(x @ weight) @ head - 1.0) ** 2), args=(X,), variables=[weight, head]
    )

    assert report.healthy
    assert report.findings == ()


@pytest.mark.parametrize(
    "stopped",
    [
        lambda x: x + tf.stop_gradient(tf.round(x) - x),
        lambda x: x * tf.stop_gradient(tf.sigmoid(x)),
        lambda x: tf.stop_gradient(2.0 * x) - x,
    ],
    ids=["straight through", "gate", "reversal"],
)
def test_what_is_stopped_on_purpose_is_no_finding(stopped: Callable[[Any], Any]) -> None:
    weight, head = variables()

    report = tb_gradflow.explain(
        lambda x: tf.reduce_mean((stopped(x @ weight) @ head - 1.0) ** 2), args=(X,), variables=[weight, head]
    )

    assert report.healthy


@pytest.mark.parametrize(
    "layers",
    [
        lambda: [keras.layers.Dense(8, "relu"), keras.layers.Dropout(0.5)],
        lambda: [keras.layers.Dense(8), keras.layers.BatchNormalization(), keras.layers.ReLU()],
        lambda: [keras.layers.Reshape((2, 2)), keras.layers.LSTM(3)],
        lambda: [keras.layers.Reshape((2, 2)), keras.layers.MultiHeadAttention(2, 2)],
    ],
    ids=["dropout", "batch norm", "lstm", "attention"],
)
def test_right_gradients_agree_beside_a_wrong_one(layers: Callable[[], Any]) -> None:
    class Doubles(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return doubled(x)

    class OfItself(keras.layers.Layer):
        def __init__(self, layer: Any) -> None:
            super().__init__()
            self.layer = layer

        def call(self, x: Any) -> Any:
            return self.layer(x, x)

    keras.utils.set_random_seed(1)
    made = [OfItself(each) if isinstance(each, keras.layers.MultiHeadAttention) else each for each in layers()]
    first = [keras.Input((4,)), keras.layers.Dense(4, name="first"), Doubles()]
    model = keras.Sequential([*first, *made, keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    report = tb_gradflow.explain(model, X, X[:, :1])

    assert {each.cause for each in report.findings if each.severity != "info"} == {"custom_gradient_wrong"}
    assert {each.of.rpartition("/")[0] for each in slopes_of(report)} == {"sequential/first"}


def slope(amount: float, change: float, predicted: float, noise: float = 0.0) -> Slope:
    """A move of a loss of about zero."""
    return Slope(0, 0, "gradient", 1.0, amount, 0.0, noise / 10.0, change, -change, predicted)


@pytest.mark.parametrize(
    ("change", "disagrees"),
    [
        (lambda h: 2.0 * h, True),
        (lambda h: -h, True),
        (lambda h: 0.0, True),
        (lambda h: h, False),
        (lambda h: 1.1 * h, False),
        (lambda h: h + 50.0 * h**2, False),  # a kink on the path
        (lambda h: h + 0.02, False),  # a jump
    ],
    ids=["twice", "reversed", "flat", "equal", "almost", "kink", "jump"],
)
def test_a_gradient_disagrees_if_the_loss_has_another_slope_at_two_lengths(
    change: Callable[[float], float], disagrees: bool
) -> None:
    moves = [slope(each, change(each), each) for each in (0.01, 0.0025)]

    assert disagree(*moves) == disagrees


def test_noise_is_no_disagreement() -> None:
    assert not disagree(slope(0.01, 0.02, 0.01, noise=0.02), slope(0.0025, 0.005, 0.0025, noise=0.02))
