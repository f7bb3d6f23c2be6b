"""How a value got to where it breaks, over the recorded steps: against the values that a plain loop computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tests.trace.recording import train
from tests.trace.training.test_harmless import assert_identical

layers = keras.layers

X = np.random.default_rng(0).normal(size=(256, 4)).astype("f")
Y = 0.1 * X[:, :1]


class Net(keras.Model):
    """The weight of a certain loss grows without a bound."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.mean, self.logvar = layers.Dense(8, "tanh"), layers.Dense(1), layers.Dense(1)

    def loss_of(self, x: Any, y: Any) -> tuple[Any, Any]:
        h = self.hidden(x)
        logvar = self.logvar(h)
        return tf.reduce_mean((y - self.mean(h)) ** 2 * tf.exp(logvar) - 3.0 * logvar**2), logvar

    def train_step(self, data: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            loss, _ = self.loss_of(*data)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"loss": loss}

    def call(self, x: Any) -> Any:
        return self.mean(self.hidden(x)) + self.logvar(self.hidden(x))


def net(**options: Any) -> Any:
    keras.utils.set_random_seed(0)
    model = Net()
    model.compile(keras.optimizers.SGD(0.05), **options)
    model.build((None, 4))
    return model


def largest_logvars(steps: int) -> list[float]:
    """By step, from plain tapes."""
    model, found = net(), []
    for step in range(steps):
        x, y = (tf.constant(each[32 * step % 256 :][:32]) for each in (X, Y))
        with tf.GradientTape() as tape:
            loss, logvar = model.loss_of(x, y)
        found.append(float(tf.reduce_max(logvar)))
        model.optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return found


def findings_of(log: Path) -> list[Any]:
    opened = tb_gradflow.open_log(log)
    return [each for step in opened.steps for each in opened.report(step).findings]


COURSE = re.compile(r"`logvar` has grown from (.*?)\.(?: |$)")


@pytest.mark.parametrize(
    "options",
    [{"jit_compile": False}, {"jit_compile": False, "steps_per_execution": 2}],
    ids=["plain", "several steps per execution"],
)
def test_an_exponent_that_grew_says_from_what_and_when(tmp_path: Path, options: dict[str, Any]) -> None:
    model = net(**options)

    model.fit(
        X, Y, batch_size=32, epochs=1, shuffle=False, verbose=0, callbacks=[GradFlowCallback(tmp_path, update_freq=4)]
    )

    opened = tb_gradflow.open_log(tmp_path)
    message = next(each.message for each in findings_of(tmp_path) if each.cause == "exp_overflow")
    assert "`logvar` reaches " in message
    told = COURSE.search(message)
    assert told is not None, message
    found = re.findall(r"(\S+) in step (\d+)", told[1])
    values, steps = [float(value) for value, _ in found], [int(step) for _, step in found]
    plain = largest_logvars(steps[-1] + 1)
    assert values == pytest.approx([plain[step] for step in steps], rel=0.01)
    # Of several steps in one execution the last is recorded.
    assert steps == ([1, 5] if "steps_per_execution" in options else [0, 4, 5])
    assert values[0] < 4 < 88 < values[-1]
    assert not [each for each in opened.report(steps[-1]).diagnosis.unverified if "forward pass" in each]


def watched(log: Path, loss_of: Callable[[Any], Any], start: float, rate: float, steps: int) -> list[float]:
    """Descends, and returns the value before each step."""
    scale = tf.Variable(start, name="scale")

    @tb_gradflow.watch(log, update_freq=1)
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(scale)
        scale.assign_sub(rate * tape.gradient(loss, scale))
        return loss

    found = []
    for _ in range(steps):
        found.append(float(scale))
        step()
    step.flush()
    return found


def test_a_logarithm_says_how_its_input_fell(tmp_path: Path) -> None:
    before = watched(tmp_path, lambda scale: tf.math.log(scale) + 3.0 * scale, 1.0, 0.1, 8)
    broken = next(number for number, value in enumerate(before) if value <= 0)

    message = next(each.message for each in findings_of(tmp_path) if each.cause == "log_zero")

    expected = (
        f"from 1 in step 0 to {before[broken - 1]:.3g} in step {broken - 1} and {before[broken]:.3g} in step {broken}."
    )
    assert f"The smallest value of `scale` has fallen {expected}" in message


def test_what_is_there_from_the_first_step_has_not_come_about(tmp_path: Path) -> None:
    watched(tmp_path, lambda scale: tf.exp(scale * 100.0), 1.0, 0.1, 3)

    assert not any("has grown" in each.message for each in findings_of(tmp_path))


def test_a_healthy_training_has_the_ranges_in_its_log_and_says_nothing(tmp_path: Path) -> None:
    before = watched(tmp_path, lambda scale: tf.math.log(scale) ** 2, 2.0, 0.1, 4)

    assert not findings_of(tmp_path)
    history = tb_gradflow.open_log(tmp_path)._history
    session = history.index().session.id
    [place] = history.trace(session, 0).ranges
    chunks = [history.gradients(session, head.id) for head in history.index().chunks]
    assert np.concatenate(chunks)[:, place.row, 2:4] == pytest.approx(np.repeat([before], 2, 0).T)


class Delicate(keras.layers.Layer):
    """Functions that TensorFlow's graph optimizer rewrites, or merges with what is in front of them."""

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")
        self.shift = self.add_weight(shape=(shape[-1],), initializer="zeros", name="shift")

    def call(self, x: Any) -> Any:
        size = tf.abs(x * self.scale) + 0.1
        centred = x - tf.reduce_mean(x, -1, keepdims=True)
        normed = centred / tf.sqrt(tf.reduce_mean(tf.square(centred), -1, keepdims=True) + 1e-3)
        chained = (x + self.shift + size) / (2.0 * size + self.scale * 0.5)
        logs = (
            tf.math.log(1.0 + size)
            + tf.math.log(size * 3.0 / 2.0)
            - tf.math.log(tf.reduce_sum(tf.exp(x), -1, keepdims=True))
        )
        powers = tf.pow(size, 0.5) * tf.math.rsqrt(size + self.scale**2 + 0.1) + (tf.exp(-size) - 1.0) / (
            1.0 + tf.exp(-x)
        )
        return normed * 0.3 + chained / 3.0 + logs - powers * tf.math.reciprocal(size * 2.0)


def delicate() -> Any:
    x = keras.Input((4,))
    h = Delicate()(layers.Dense(8)(x))
    model = keras.Model(x, layers.Dense(1)(Delicate()(layers.LayerNormalization()(h))))
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "mse", jit_compile=False)
    return model


def test_measuring_the_ranges_changes_no_bit_of_a_training(tmp_path: Path) -> None:
    plain = train(delicate, X[:60], Y[:60], batch_size=8)

    recorded = train(delicate, X[:60], Y[:60], GradFlowCallback(tmp_path, update_freq=1), batch_size=8)

    assert_identical(plain, recorded)
    history = tb_gradflow.open_log(tmp_path)._history
    trace = history.trace(history.index().session.id, 0)
    assert {trace.ops[each.op].type for each in trace.ranges} >= {"Log", "Exp", "RealDiv", "Rsqrt"}
