"""Ops of which TensorFlow keeps no stack."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np

import tb_gradflow


def test_a_model_whose_step_has_such_ops_is_recorded(tmp_path: Path) -> None:
    """Characters are read off a sequence by a recurrent layer and Keras's CTC loss."""
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(3)
    layers = [keras.Input((12, 5)), keras.layers.LSTM(8, return_sequences=True), keras.layers.Dense(5, "softmax")]
    model = keras.Sequential(layers)
    model.compile("adam", keras.losses.CTC())
    draw = np.random.default_rng(3)
    x, y = draw.normal(size=(16, 12, 5)).astype("float32"), draw.integers(1, 5, (16, 3))

    model.fit(x, y, batch_size=8, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)])

    report = tb_gradflow.open_log(tmp_path).report()
    assert report.healthy
    trained = {variable.name for variable in model.trainable_variables}
    assert {each.status for name, each in report.variables.items() if name.rpartition("/")[2] in trained} == {
        "connected"
    }
    assert report.step == 1
