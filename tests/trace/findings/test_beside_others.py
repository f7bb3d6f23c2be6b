"""A variable that one term of the loss trains, and that another one uses without a gradient."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

import tb_gradflow
from tb_gradflow.serve.reports.report import Report

X = np.random.default_rng(0).normal(size=(32, 6)).astype("float32")


class Compressor(keras.Model):
    """Learned compression: a rate, and the distortion of what is restored from the quantised code."""

    def __init__(self, quantise: Callable[[Any], Any]) -> None:
        super().__init__()
        self.analysis, self.synthesis = layers.Dense(3, name="analysis"), layers.Dense(6, name="synthesis")
        self.quantise = quantise

    def call(self, x: Any) -> Any:
        code = self.analysis(x)
        self.add_loss(0.1 * ops.mean(ops.log1p(ops.square(code))))
        return self.synthesis(self.quantise(code))


class Codebook(keras.Model):
    """A VQ-VAE: the reconstruction trains the encoder through a straight-through estimator, a second term trains the
    codes, and a third one keeps the encoder near them."""

    def __init__(self, *, is_straight: bool = True) -> None:
        super().__init__()
        self.is_straight = is_straight
        self.encoder, self.decoder = layers.Dense(2, name="encoder"), layers.Dense(6, name="decoder")
        self.codes = self.add_weight(shape=(8, 2), initializer="random_normal", name="codes")

    def call(self, x: Any) -> Any:
        z = self.encoder(x)
        distances = ops.sum(ops.square(z[:, None] - self.codes[None]), -1)
        code = ops.take(self.codes, ops.argmin(distances, -1), axis=0)
        self.add_loss(ops.mean(ops.square(ops.stop_gradient(z) - code)))
        self.add_loss(0.25 * ops.mean(ops.square(z - ops.stop_gradient(code))))
        return self.decoder(z + ops.stop_gradient(code - z) if self.is_straight else code)


class Gated(keras.Model):
    """A score has its own loss, and decides of which examples the other loss is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.values = layers.Dense(1, name="score"), layers.Dense(6, name="values")

    def call(self, x: Any) -> Any:
        score = self.score(x)
        self.add_loss(ops.mean(ops.square(score - x[:, :1])))
        return self.values(x) * ops.cast(score > 0.0, "float32")


class Experts(keras.Model):
    """The loss of a router keeps the load even; it decides which of two experts gets a row."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.experts = layers.Dense(2, name="router"), layers.Dense(12, name="experts")

    def call(self, x: Any) -> Any:
        scores = self.router(x)
        self.add_loss(ops.mean(ops.square(ops.mean(ops.softmax(scores), 0) - 0.5)))
        chosen = ops.argmax(scores, -1)[:, None, None]
        return ops.take_along_axis(ops.reshape(self.experts(x), (-1, 2, 6)), chosen, axis=1)[:, 0]


def fitted(model: Any, log_dir: Path) -> Report:
    keras.utils.set_random_seed(3)
    model.compile(keras.optimizers.SGD(0.01), "mse")
    model.fit(X, X, epochs=3, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(str(log_dir), update_freq=1)])
    return tb_gradflow.open_log(log_dir).report()


def straight_through(code: Any) -> Any:
    return code + ops.stop_gradient(ops.round(code) - code)


@pytest.mark.parametrize(
    ("quantise", "cause"),
    [
        (lambda code: ops.round(code * 4.0) / 4.0, "nondiff_rounding"),
        (lambda code: ops.cast(ops.cast(code * 4.0, "int32"), "float32"), "integer_dtype"),
    ],
)
def test_an_encoder_that_learns_from_the_rate_alone_is_named(
    quantise: Callable[[Any], Any], cause: str, tmp_path: Path
) -> None:
    report = fitted(Compressor(quantise), tmp_path)

    [finding] = report.findings
    assert (finding.cause, finding.severity) == (cause, "warning")
    assert {name.rpartition("/")[0] for name in finding.variables} == {"compressor/analysis"}
    assert "no gradient from one term of the loss: " in finding.message
    assert "no gradient from one term of the loss" in report.summary


def test_a_decoder_that_gets_the_number_of_a_code_does_not_train_the_encoder(tmp_path: Path) -> None:
    [finding] = fitted(Codebook(is_straight=False), tmp_path).findings

    assert (finding.cause, finding.severity) == ("nondiff_index", "info")
    assert {name.rpartition("/")[0] for name in finding.variables} == {"codebook/encoder"}
    assert "no gradient from one term of the loss: " in finding.message
    assert "`x + tf.stop_gradient(chosen - x)`" in finding.fix


@pytest.mark.parametrize("make", [Codebook, lambda: Experts()])
def test_nothing_is_said_of_a_choice_beside_other_paths(make: Callable[[], Any], tmp_path: Path) -> None:
    assert fitted(make(), tmp_path).findings == ()


@pytest.mark.parametrize("make", [lambda: Compressor(straight_through), Codebook, Gated])
def test_what_is_estimated_or_only_chooses_is_healthy(make: Callable[[], Any], tmp_path: Path) -> None:
    assert fitted(make(), tmp_path).healthy


def test_parts_that_several_ops_without_a_line_cut_off_are_counted_together(tmp_path: Path) -> None:
    """A functional model is built before the step is traced."""
    inputs = keras.Input((6,))
    parts = ops.split(layers.Dense(6, name="boxes")(inputs), 6, axis=-1)
    whole = [ops.cast(ops.cast(part, "int32"), "float32") for part in parts[:4]]

    report = fitted(keras.Model(inputs, ops.concatenate([*whole, *parts[4:]], -1)), tmp_path)

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("integer_dtype", "warning")
    assert "67% of their elements" in finding.message


def test_a_sampled_action_is_healthy(tmp_path: Path) -> None:
    """The critic's loss depends on the action that the actor draws, and the actor has a term of its own."""
    keras.utils.set_random_seed(0)
    actor, critic = layers.Dense(3, name="actor"), layers.Dense(1, name="critic")
    actor.build((None, 6))
    critic.build((None, 9))
    variables = actor.trainable_variables + critic.trainable_variables

    @tb_gradflow.watch(str(tmp_path), update_freq=1)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = actor(x)
            action = tf.one_hot(tf.random.categorical(logits, 1)[:, 0], 3)
            value = critic(tf.concat([x, action], 1))[:, 0]
            advantage = tf.stop_gradient(x[:, 0] - value)
            policy = -tf.reduce_mean(tf.reduce_sum(tf.nn.log_softmax(logits) * action, 1) * advantage)
            loss = policy + 0.5 * tf.reduce_mean(tf.square(x[:, 0] - value))
        gradients = tape.gradient(loss, variables)
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.assign_sub(0.01 * gradient)
        return loss

    for _ in range(3):
        step(tf.constant(X))
    step.flush()

    assert tb_gradflow.open_log(tmp_path).report().healthy
