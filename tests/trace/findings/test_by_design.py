"""What people do on purpose is information or nothing; what looks nearly like it and is wrong is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.serve.reports.report import Report

VALUES = [0.3, 0.7, -1.3, 2.1]


def of_function(function: Any) -> Report:
    w = tf.Variable(VALUES, name="w")
    weights = tf.constant([0.4, -0.9, 0.5, 0.7])
    return tb_gradflow.explain(lambda: tf.reduce_sum(function(w * 1.0) * weights), variables=[w])


@tf.custom_gradient
def huber_like(x: Any) -> Any:
    return x * x, lambda upstream: upstream * tf.clip_by_value(2.0 * x, -1.0, 1.0)


@tf.custom_gradient
def sign_beyond_one(x: Any) -> Any:
    return tf.square(x), lambda upstream: upstream * tf.where(tf.abs(x) < 1.0, 2.0 * x, 2.0 * tf.sign(x))


@tf.custom_gradient
def turned_round(x: Any) -> Any:
    return tf.identity(x), lambda upstream: -0.5 * upstream


@tf.custom_gradient
def weakened(x: Any) -> Any:
    return tf.identity(x), lambda upstream: 0.1 * upstream


@tf.custom_gradient
def clipped(x: Any) -> Any:
    return tf.identity(x), lambda upstream: tf.clip_by_norm(upstream, 0.1)


@pytest.mark.parametrize("function", [huber_like, sign_beyond_one, turned_round, weakened, clipped])
def test_a_gradient_that_is_shaped_on_purpose_is_no_fault(function: Any) -> None:
    of_function(function).assert_healthy()


@tf.custom_gradient
def without_its_argument(x: Any) -> Any:
    return x * x, lambda upstream: 2.0 * upstream


@tf.custom_gradient
def wrong_sign_in_part(x: Any) -> Any:
    return x * x, lambda upstream: upstream * 2.0 * tf.abs(x)


@tf.custom_gradient
def half_of_it(x: Any) -> Any:
    return x * x, lambda upstream: upstream * x


@tf.custom_gradient
def without_a_term(x: Any) -> Any:
    return x * tf.sigmoid(x), lambda upstream: upstream * tf.sigmoid(x)


@pytest.mark.parametrize("function", [without_its_argument, wrong_sign_in_part, half_of_it, without_a_term])
def test_a_gradient_that_lacks_something_is_told(function: Any) -> None:
    [finding] = of_function(function).findings

    assert (finding.cause, finding.severity) == ("custom_gradient_wrong", "warning")


@pytest.mark.parametrize("added", [lambda b: b, lambda b: 0.5 * tf.reduce_sum(b)])
def test_what_is_only_added_to_the_loss_is_information_with_words_of_its_own(added: Any) -> None:
    w, b = tf.Variable([1.0, 2.0], name="w"), tf.Variable(0.5, name="b")

    def loss(x: Any) -> Any:
        return tf.reduce_mean(tf.square(x * w)) + added(b)

    [finding] = tb_gradflow.explain(loss, args=(tf.ones((4, 2)),), variables=[w, b]).findings

    assert (finding.cause, finding.severity, finding.variables) == ("regularizer_only", "info", ("b",))
    assert "only added to the loss" in finding.message


def test_a_penalty_without_data_stays_a_warning() -> None:
    w, b = tf.Variable([1.0, 2.0], name="w"), tf.Variable([0.5], name="b")

    def loss(x: Any) -> Any:
        return tf.reduce_mean(tf.square(x * w)) + tf.reduce_sum(tf.square(b))

    [finding] = tb_gradflow.explain(loss, args=(tf.ones((4, 2)),), variables=[w, b]).findings

    assert (finding.cause, finding.severity, finding.variables) == ("regularizer_only", "warning", ("b",))


def test_what_a_loop_goes_on_with_is_no_penalty() -> None:
    """The sum of the weight is multiplied in the next turn, and takes part in all that follows."""
    w, growth = tf.Variable(VALUES, name="w"), tf.Variable(2.0, name="growth")

    @tf.function
    def loss() -> Any:
        total = tf.constant(0.0)
        for _ in tf.range(3):
            total = total * growth + tf.reduce_sum(w)
        return total + tf.reduce_sum(tf.square(w))

    assert tb_gradflow.explain(loss, variables=[w, growth]).findings == ()


def test_offsets_in_front_of_normalisations_are_told_with_the_layers_that_take_them_out() -> None:
    keras.utils.set_random_seed(1)
    layers = keras.layers
    parts = [layers.Conv2D(4, 3, name="first"), layers.BatchNormalization(name="calm"), layers.ReLU()]
    parts += [layers.Conv2D(4, 3, name="second"), layers.BatchNormalization(name="calmer"), layers.ReLU()]
    model = keras.Sequential([keras.Input((9, 9, 2)), *parts, layers.GlobalAveragePooling2D(), layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(16, 9, 9, 2)).astype(np.float32)

    [finding] = tb_gradflow.explain(model, x, x[:, 0, 0, :1]).findings

    assert (finding.cause, finding.severity) == ("shift_invariant_parameter", "info")
    assert finding.variables == ("sequential/first/bias", "sequential/second/bias")
    assert "the batch normalisation after each of them (`calm` and `calmer`)" in finding.message


@pytest.mark.parametrize("above", [4, 5])
def test_rows_of_an_absolute_error_in_balance_are_information(above: int, tmp_path: Path) -> None:
    """In step 1, with as many rows above their target as below, the offset gets a gradient of exactly zero."""
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name="out", kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(1e-9), "mae")
    x = np.random.default_rng(0).normal(size=(16, 3)).astype("float32")
    y = np.array([1.0] * 8 + [1.0] * above + [-1.0] * (8 - above), "float32")[:, None]
    recorder = tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)

    model.fit(x, y, batch_size=8, shuffle=False, verbose=0, callbacks=[recorder])

    report = tb_gradflow.open_log(tmp_path).report(1)
    assert report.healthy
    assert [(each.cause, "as many are positive as negative" in each.message) for each in report.findings] == [
        ("zero_gradient", True)
    ] * (above == 4)


class Blend(keras.layers.Layer):
    """Blends a new block in, as in progressive growing: its share is a variable that a callback raises."""

    def __init__(self) -> None:
        super().__init__()
        self.old, self.new = keras.layers.Dense(2), keras.layers.Dense(2, "tanh")
        self.share = self.add_weight(name="share", shape=(), initializer="zeros", trainable=False)

    def call(self, x: Any) -> Any:
        return (1.0 - self.share) * self.old(x) + self.share * self.new(x)


def with_new_block(directory: Path, *, is_raised: bool, steps: int) -> Any:
    keras.utils.set_random_seed(1)
    blend = Blend()
    model = keras.Sequential([keras.Input((3,)), blend])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    x = np.random.default_rng(1).normal(size=(2 * steps, 3)).astype("float32")

    class Raise(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            blend.share.assign(batch / steps if is_raised else 0.0)

    recorder = tb_gradflow.GradFlowCallback(directory, update_freq=10)
    model.fit(x, x[:, :2], batch_size=2, shuffle=False, verbose=0, callbacks=[Raise(), recorder])
    return tb_gradflow.open_log(directory)


def test_a_weight_that_a_callback_raises_may_begin_at_zero(tmp_path: Path) -> None:
    log = with_new_block(tmp_path, is_raised=True, steps=21)

    first = log.report(0)
    assert first.healthy
    [finding] = first.findings
    assert (finding.cause, finding.severity, finding.edit) == ("zero_init_product", "info", None)
    assert "share`, which is not trained" in finding.message
    assert not log.report().findings


def test_a_weight_that_stays_at_zero_is_reported(tmp_path: Path) -> None:
    log = with_new_block(tmp_path, is_raised=False, steps=81)

    assert log.report(0).healthy
    [finding] = log.report().findings
    assert (finding.cause, finding.severity) == ("zero_init_product", "warning")
    assert "is not trained" in finding.message
