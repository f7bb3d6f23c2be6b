"""Weights of layers that are not to be trained, in loops of the user's own, where only Keras knows of it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

import tb_gradflow


def recorded(log_dir: Path, kind: str, *, compiled: bool, asks_for_all: bool = False) -> tb_gradflow.api.Log:
    keras: Any = importlib.import_module(kind)
    base = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(6)])
    base.trainable = False
    model = keras.Sequential([base, keras.layers.Dense(3, name="head")])
    model.build((None, 4))
    optimizer = keras.optimizers.SGD(0.1)
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
    assert "all 2 trainable variables" in report.summary


def test_what_a_gradient_is_asked_for_is_trained_whatever_its_layer_says(tmp_path: Path) -> None:
    report = recorded(tmp_path, "keras", compiled=True, asks_for_all=True).report()

    assert {each.status for each in report.variables.values()} == {"connected"}
