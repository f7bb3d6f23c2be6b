"""`train_on_batch` with what Keras passes on as it is: lists of inputs, and no sample weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import tb_gradflow
from tb_gradflow.recorded import Recorded

LEFT, RIGHT = (np.linspace(-1, 1, 4 * size, dtype="float32").reshape(4, size) for size in (3, 2))
Y = np.ones((4, 1), "float32")


def losses(inputs: Any, *, run_eagerly: bool) -> list[Any]:
    keras.utils.set_random_seed(1)
    left, right = keras.Input((3,), name="left"), keras.Input((2,), name="right")
    output = keras.layers.Dense(1)(keras.layers.Concatenate()([left, right]))
    tower = keras.Model({"left": left, "right": right} if isinstance(inputs, dict) else [left, right], output)
    tower.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=run_eagerly)
    plain = [tower.train_on_batch(inputs, Y) for _ in range(3)]
    weighted = [tower.train_on_batch(inputs, Y, sample_weight=np.arange(4.0)) for _ in range(2)]
    return [np.asarray(each).tolist() for each in plain + weighted]


@pytest.mark.parametrize("run_eagerly", [True, False])
@pytest.mark.parametrize("inputs", [[LEFT, RIGHT], {"left": LEFT, "right": RIGHT}], ids=["a list", "a dictionary"])
def test_batches_of_every_form_train_as_without_the_recorder(inputs: Any, run_eagerly: bool, tmp_path: Path) -> None:
    alone = losses(inputs, run_eagerly=run_eagerly)

    recorder = Recorded(lambda: str(tmp_path), {"update_freq": 1})
    recorder.start()
    try:
        recorded = losses(inputs, run_eagerly=run_eagerly)
    finally:
        recorder.stop()

    assert recorded == alone
    [name] = recorder.names
    log = tb_gradflow.open_log(tmp_path / name)
    assert list(log.steps) == [0, 1, 2, 3, 4]
    assert log.report().healthy
