"""Algorithms that assign to weights after an optimizer has updated them, on purpose; and custom gradients, codebooks
and frozen models beside which a rule must stay silent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tb_gradflow
from tb_gradflow.serve.reports.report import Report

X = tf.constant(np.random.default_rng(3).normal(size=(32, 4)), tf.float32)
Y = tf.reduce_sum(X, 1, keepdims=True)

Step = Callable[[Callable[[], Any], tf.Variable, tf.Variable], None]


def lookahead(update: Callable[[], Any], weight: tf.Variable, other: tf.Variable) -> None:
    update()
    other.assign(other + 0.5 * (weight - other))
    weight.assign(other)


def reptile(update: Callable[[], Any], weight: tf.Variable, other: tf.Variable) -> None:
    other.assign(weight)
    update()
    weight.assign(other + 0.1 * (weight - other))


def first_order(update: Callable[[], Any], weight: tf.Variable, other: tf.Variable) -> None:
    other.assign(weight)
    update()
    weight.assign(other)
    update()


def rollback(update: Callable[[], Any], weight: tf.Variable, other: tf.Variable) -> None:
    update()
    tf.cond(tf.reduce_mean(weight) > 100.0, lambda: weight.assign(other), lambda: weight.assign(weight))


def doubled(update: Callable[[], Any], weight: tf.Variable, other: tf.Variable) -> None:
    """In as many ops as there are ways through them if each is asked again."""
    update()
    value = tf.identity(other)
    for _ in range(40):
        value = (value + value) * 0.5
    weight.assign(0.1 * weight + value * 0.0 + tf.tanh(weight))


@pytest.mark.parametrize("step", [lookahead, reptile, first_order, rollback, doubled])
def test_what_an_algorithm_puts_back_is_no_mistake(tmp_path: Path, step: Step) -> None:
    weight, other = tf.Variable(tf.ones((4, 1)), name="weight"), tf.Variable(tf.ones((4, 1)), name="other")
    optimizer = keras.optimizers.SGD(0.05)
    optimizer.build([weight])

    def update() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((X @ weight - Y) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def train() -> None:
        step(update, weight, other)

    train()
    train.flush()

    assert all(finding.severity == "info" for finding in reported(tmp_path).findings)


def test_a_variable_that_is_first_read_after_the_request_is_not_in_the_trace(tmp_path: Path) -> None:
    weight, late = tf.Variable(tf.zeros((4, 1)), name="weight"), tf.Variable(tf.ones((4, 1)), name="late")
    optimizer = keras.optimizers.SGD(0.05)
    optimizer.build([weight])

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def train() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((X @ weight - Y) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
        weight.assign(late)

    train()
    train.flush()

    assert reported(tmp_path).variables["weight"].status == "connected"


def test_a_codebook_that_an_optimizer_gets_zeros_for_is_kept_up_by_the_step(tmp_path: Path) -> None:
    codebook = tf.Variable(tf.random.normal((6, 3), seed=1), name="codebook")
    encoder = tf.Variable(tf.random.normal((4, 3), seed=2), name="encoder")
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build([codebook, encoder])

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def train() -> None:
        with tf.GradientTape() as tape:
            z = X @ encoder
            nearest = tf.argmin(tf.reduce_sum((z[:, None] - codebook[None]) ** 2, -1), -1)
            quantised = tf.gather(tf.stop_gradient(tf.identity(codebook)), nearest)
            through = z + tf.stop_gradient(quantised - z)
            loss = tf.reduce_mean((through - Y) ** 2) + tf.reduce_mean((z - tf.stop_gradient(quantised)) ** 2)
        weights = [codebook, encoder]
        gradients = tape.gradient(loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        chosen = tf.one_hot(nearest, 6)
        means = tf.matmul(chosen, z, transpose_a=True) / (tf.reduce_sum(chosen, 0)[:, None] + 1e-3)
        codebook.assign(means)

    train()
    train.flush()

    assert {(each.cause, each.severity) for each in reported(tmp_path).findings} == {("non_trainable_state", "info")}


class Attending(tf_keras.Model):
    """Creates the layers of its attention when it is first called."""

    def __init__(self) -> None:
        super().__init__(name="base")
        self.attention = tf_keras.layers.MultiHeadAttention(2, 4)
        self.out = tf_keras.layers.Dense(4)

    def call(self, x: Any) -> Any:
        return self.out(self.attention(x, x))


def test_layers_that_a_frozen_model_of_keras_2_creates_later_stay_frozen_on_purpose(tmp_path: Path) -> None:
    base = Attending()
    base.trainable = False
    model = tf_keras.Sequential([base, tf_keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = tf.reshape(X, (8, 4, 4))

    model.fit(x, tf.ones((8, 4, 1)), verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    assert not reported(tmp_path).findings


@tf.custom_gradient
def silently_quantised(x: Any, largest: Any) -> Any:
    return tf.round(x / largest * 7) * largest / 7, lambda upstream: (tf.zeros_like(upstream), None)


class Quantised(keras.layers.Layer):
    def build(self, shape: tuple[int | None, ...]) -> None:
        self.kernel = self.add_weight(shape=(4, 1), name="kernel")
        self.largest = self.add_weight(shape=(), initializer="ones", trainable=False, name="largest")

    def call(self, x: Any) -> Any:
        self.largest.assign(0.9 * self.largest + 0.1 * tf.reduce_max(tf.abs(self.kernel)))
        return x @ silently_quantised(tf.convert_to_tensor(self.kernel), tf.convert_to_tensor(self.largest))


def test_a_scale_that_is_kept_in_a_variable_is_not_to_blame_for_zeros_of_a_custom_gradient(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((4,)), Quantised()])
    model.compile("sgd", "mse")

    model.fit(X, Y, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    assert [finding.cause for finding in reported(tmp_path).findings] == ["custom_gradient_wrong"]


def reported(directory: Path) -> Report:
    return tb_gradflow.open_log(directory).report()
