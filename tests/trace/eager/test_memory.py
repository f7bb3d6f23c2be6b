"""What a recorded eager step keeps in memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_gradflow.trace.program import hooks
from tb_gradflow.trace.program.recording import Recording


@pytest.fixture
def without_garbage_collection(tmp_path: Path) -> Iterator[None]:
    hooks.start(Recording(str(tmp_path), {"update_freq": 1}))
    gc.disable()
    yield
    gc.enable()
    hooks.stop()


def test_a_recorded_step_leaves_none_of_its_tensors(without_garbage_collection: None) -> None:
    layers = [keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)]
    optimizer = keras.optimizers.SGD()
    passed: list[weakref.ref[Any]] = []

    def step() -> None:
        with tf.GradientTape() as tape:
            hidden = layers[0](tf.constant(np.ones((4, 3), "float32")))
            loss = tf.reduce_mean(layers[1](hidden) ** 2)
        weights = [each for layer in layers for each in layer.trainable_variables]
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        passed.extend(weakref.ref(each) for each in (hidden, loss, *gradients))

    for _ in range(3):
        step()

    assert [each() for each in passed] == [None] * len(passed)


def test_what_follows_from_the_loss_is_not_kept_until_the_step_is_over(without_garbage_collection: None) -> None:
    weight, alive = tf.Variable(np.ones((3, 3), "float32")), []

    @tf.custom_gradient
    def noted(x: Any) -> Any:
        def backward(gradient: Any) -> Any:
            passing = gradient * 3.0
            alive.append(weakref.ref(passing))
            return passing * 2.0

        return tf.identity(x), backward

    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(noted(weight * 1.0) ** 2)
        gradient = tape.gradient(loss, weight)
        assert alive[-1]() is None
        weight.assign_sub(0.1 * gradient)
