"""Programs, and libraries in them, that replace `tf.GradientTape.gradient` by a function that does something with what
its callers have asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.recorded import Recorded
from tests.trace.recording import data


def eager() -> list[float]:
    weight = tf.Variable([1.0, 2.0], name="weight")
    losses = []
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((weight**2) ** 2)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        losses.append(float(loss))
    return [*losses, *weight.numpy()]


def compiled() -> list[float]:
    weight = tf.Variable([1.0, 2.0], name="weight")

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((weight**2) ** 2)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    return [*(float(step()) for _ in range(2)), *weight.numpy()]


def fit() -> list[float]:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2)], name="net")
    model.compile("sgd", "mse")
    x, y = data(rows=16)
    losses: list[float] = model.fit(x, y, epochs=2, verbose=0).history["loss"]
    return losses


@pytest.mark.parametrize("train", [eager, compiled, fit])
def test_a_gradient_that_the_program_clips(
    train: Callable[[], list[float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooked = Recorded(lambda: str(tmp_path))  # hooks what is there, once in a process
    hooked.start()
    hooked.stop()
    plain = tf.GradientTape.gradient

    def gradient(self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        found = plain(self, target, sources, *args, **kwargs)
        return [tf.clip_by_norm(each, 1.0) for each in found] if isinstance(found, list) else tf.clip_by_norm(found, 1)

    monkeypatch.setattr(tf.GradientTape, "gradient", gradient)
    alone = train()
    recorded = Recorded(lambda: str(tmp_path), {"update_freq": 1})
    recorded.start()
    try:
        assert train() == alone
    finally:
        recorded.stop()

    assert tf.GradientTape.gradient is gradient
    [name] = recorded.names
    log = tb_gradflow.open_log(tmp_path / name)
    assert log.steps == (0, 1)
    assert log.report().healthy
    for variable in log.report().variables.values():
        assert variable.status == "connected"
        assert variable.gradient is not None
        assert np.isclose(variable.gradient.norm, 1.0) or (train is fit and variable.gradient.norm < 1.0)
