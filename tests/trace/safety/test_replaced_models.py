"""A program that trains model after model: what it has dropped is freed, though it was recorded."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.recorded import Recorded

X, Y = np.ones((64, 4), np.float32), np.ones((64, 1), np.float32)


class OwnStep(keras.Model):
    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"loss": loss}


def fitted(kind: type[keras.Model], callbacks: list[Any]) -> Any:
    """A variable of a model that was trained and dropped."""
    inputs = keras.Input((4,))
    model = kind(inputs, keras.layers.Dense(1)(inputs))
    model.compile("adam", "mse")
    model.fit(X, Y, batch_size=4, epochs=2, verbose=0, callbacks=callbacks)
    return weakref.ref(model.layers[-1].kernel.value)


def watched(log_dir: Path) -> Any:
    kernel = tf.Variable(tf.ones((4, 1)))
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build([kernel])

    @tb_gradflow.watch(log_dir, update_freq=8)
    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ kernel - y))
        optimizer.apply(tape.gradient(loss, [kernel]), [kernel])
        return loss

    for _ in range(12):
        step(tf.constant(X[:4]), tf.constant(Y[:4]))
    return weakref.ref(kernel)


@pytest.mark.parametrize("kind", [keras.Model, OwnStep])
def test_a_fit_with_the_callback(kind: type[keras.Model], tmp_path: Path) -> None:
    variable = fitted(kind, [tb_gradflow.GradFlowCallback(tmp_path, update_freq=8)])

    gc.collect()

    assert variable() is None


def test_a_fit_that_is_recorded_unchanged(tmp_path: Path) -> None:
    recorded = Recorded(lambda: str(tmp_path))
    recorded.start()
    try:
        variable = fitted(OwnStep, [])
        gc.collect()
        is_freed = variable() is None
    finally:
        recorded.stop()

    assert is_freed
    assert recorded.names == ["own_step"]


def test_a_watched_step(tmp_path: Path) -> None:
    variable = watched(tmp_path)

    gc.collect()

    assert variable() is None
