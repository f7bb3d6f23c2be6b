"""A variable that begins as another one which the same step makes: TensorFlow gives them values while the step runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tests.trace.recording import read


class Retrieval(keras.Model):
    """Its candidates begin as the embeddings do, as in a recommender that looks up the best ones."""

    def __init__(self) -> None:
        super().__init__()
        self.items = keras.layers.Embedding(5, 3)

    def build(self, shape: Any) -> None:
        self.items.build(shape)
        self.candidates = keras.Variable(self.items.embeddings, trainable=False, name="candidates")
        self.built = True

    def call(self, indices: Any) -> Any:
        return self.items(indices)

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        return tf.reduce_mean(tf.square(y_pred - 1.0))


def _weights_after_fit(callbacks: list[Any]) -> list[Any]:
    keras.utils.set_random_seed(3)
    model = Retrieval()
    model.compile("adam")
    model.fit(np.arange(20) % 5, batch_size=5, verbose=0, shuffle=False, callbacks=callbacks)
    return [np.asarray(variable.value) for variable in model.variables]


def test_fit_gives_them_their_values_and_is_recorded_from_its_first_step(tmp_path: Path) -> None:
    plain = _weights_after_fit([])

    recorded = _weights_after_fit([tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)])

    for one, other in zip(plain, recorded, strict=True):
        np.testing.assert_array_equal(one, other)
    assert list(read(tmp_path).steps) == [0, 1, 2, 3]
    assert tb_gradflow.open_log(tmp_path).report().healthy


@pytest.mark.parametrize("recorded", [False, True])
def test_a_watched_step_gives_them_their_values_and_is_recorded_from_its_first(recorded: bool, tmp_path: Path) -> None:
    keras.utils.set_random_seed(3)
    model = Retrieval()
    optimizer = keras.optimizers.SGD(0.1)

    def step(indices: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(indices) - 1.0))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    step = tb_gradflow.watch(tmp_path, update_freq=1)(step) if recorded else tf.function(step)
    losses = [float(step(tf.constant([k, 1]))) for k in range(4)]

    candidates = np.asarray(model.candidates.value)
    assert losses[0] == pytest.approx(float(np.mean(np.square(candidates[[0, 1]] - 1.0))))
    assert losses[1] < losses[0]
    if recorded:
        step.flush()
        assert list(read(tmp_path).steps) == [0, 1, 2, 3]
