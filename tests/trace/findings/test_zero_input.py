"""A batch of nothing but zeros, and zeros that have nothing to do with a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

ZEROS = np.zeros((16, 4), np.float32)
NOISE = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)


def first_cause(log_dir: Path, x: Any, y: Any, hidden: Any) -> str:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), *hidden, keras.layers.Dense(1, bias_initializer="ones")])
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(str(log_dir), update_freq=1)])
    return tb_gradflow.open_log(log_dir).report().findings[0].cause


def dead() -> Any:
    return keras.layers.Dense(8, "relu", bias_initializer=keras.initializers.Constant(-100.0))


def test_a_batch_of_zeros_is_told(tmp_path: Path) -> None:
    assert first_cause(tmp_path, ZEROS, NOISE[:, :1], [keras.layers.Dense(8, "relu")]) == "zero_input"


def test_labels_may_be_zeros(tmp_path: Path) -> None:
    assert first_cause(tmp_path, NOISE, ZEROS[:, :1], [dead()]) == "dead_relu"


class Embedded(keras.layers.Layer):
    """Takes of its input nothing but its size."""

    def build(self, shape: Any) -> None:
        self.table = self.add_weight(shape=(4,), name="table", initializer="ones")

    def call(self, x: Any) -> Any:
        return tf.broadcast_to(self.table, tf.shape(x))


def test_a_batch_that_nothing_is_multiplied_with_may_be_zeros(tmp_path: Path) -> None:
    assert first_cause(tmp_path, ZEROS, NOISE[:, :1], [Embedded(), dead()]) == "dead_relu"


@pytest.mark.parametrize(("name", "cause"), [("images", "zero_input"), ("target", "zero_gradient")])
def test_a_loop_of_ones_own(tmp_path: Path, name: str, cause: str) -> None:
    weight = tf.Variable(tf.ones([4, 1]), name="weight")

    def loss_of(data: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(data @ weight - 1.0))
        weight.assign_sub(tape.gradient(loss, weight))
        return loss

    steps = {"images": lambda images: loss_of(images), "target": lambda target: loss_of(target)}
    step = tb_gradflow.watch(str(tmp_path), update_freq=1)(steps[name])
    step(tf.constant(ZEROS))
    step.flush()
    assert tb_gradflow.open_log(tmp_path).report().findings[0].cause == cause
