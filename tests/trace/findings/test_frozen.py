"""Weights of layers that are not to be trained, in loops of the user's own, where only Keras knows of it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

import tb_gradflow


def recorded(log_dir: Path, kind: str, *, compiled: bool, asks_for_all: bool = False) -> tb_gradflow.api.Log:
    library: Any = importlib.import_module(kind)
    base = library.Sequential([library.layers.Input((4,)), library.layers.Dense(8, "relu"), library.layers.Dense(6)])
    base.trainable = False
    model = library.Sequential([base, library.layers.Dense(3, name="head")])
    model.build((None, 4))
    optimizer = library.optimizers.SGD(0.1)
    wanted = model.weights if asks_for_all else model.trainable_variables

    def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, wanted), wanted, strict=True))
        return loss

    watched = tb_gradflow.watch(log_dir, update_freq=1)(tf.function(step) if compiled else step)
    watched(tf.ones((5, 4)), tf.ones((5, 3)))
    watched.flush()
    return tb_gradflow.open_log(log_dir)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])
@pytest.mark.parametrize("kind", ["keras", "tf_keras"])
def test_weights_of_a_frozen_layer_are_frozen(tmp_path: Path, kind: str, compiled: bool) -> None:
    report = recorded(tmp_path, kind, compiled=compiled).report()

    statuses = [each.status for each in report.variables.values()]
    assert sorted(statuses) == ["connected"] * 2 + ["frozen"] * 4
    assert report.findings == ()
    assert "both trainable variables" in report.summary


def test_what_a_gradient_is_asked_for_is_trained_whatever_its_layer_says(tmp_path: Path) -> None:
    report = recorded(tmp_path, "keras", compiled=True, asks_for_all=True).report()

    assert {each.status for each in report.variables.values()} == {"connected"}


def test_a_layer_that_does_not_answer_is_left_alone(tmp_path: Path) -> None:
    class Odd(keras.layers.Dense):
        @property
        def non_trainable_weights(self) -> Any:
            raise AttributeError("not yet")

    layer, optimizer = Odd(3), keras.optimizers.SGD(0.1)
    layer.build((None, 4))

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x) ** 2)
        weights = [layer.kernel, layer.bias]
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    step(tf.ones((2, 4)))
    step.flush()

    statuses = [each.status for each in tb_gradflow.open_log(tmp_path).report().variables.values()]
    assert statuses == ["connected", "connected"]
