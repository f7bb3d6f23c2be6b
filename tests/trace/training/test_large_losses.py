"""Losses of tensors above the size up to which TensorFlow's optimizer folds constants: the ops of a larger constant
remain in the step, and are merged with their consumers as those of any other value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

LOSSES: dict[str, Callable[[Any], Any]] = {
    "power": lambda error: tf.reduce_mean(error**2) / 0.0839,
    "fourth power": lambda error: tf.reduce_mean(error**4) / 0.7,
    "likelihood": lambda error: -tf.reduce_mean(0.5 * tf.math.log(error**2 + 0.1) / 3.0),
}

# More than 100 KiB.
ROWS, COLUMNS = 2200, 12


@pytest.mark.parametrize(("name", "rows"), [("power", ROWS), ("fourth power", ROWS), ("likelihood", None)])
def test_weights_are_bit_identical(name: str, rows: int | None, tmp_path: Path) -> None:
    def compiled(step: Callable[[Any], Any]) -> Any:
        return tf.function(step, input_signature=[tf.TensorSpec([rows, COLUMNS])])

    plain = trained(LOSSES[name], compiled)
    recorded = trained(
        LOSSES[name],
        lambda step: tb_gradflow.watch(str(tmp_path), update_freq=1, catch_nonfinite=False)(compiled(step)),
    )

    np.testing.assert_array_equal(recorded, plain)


def trained(loss_of: Callable[[Any], Any], wrapped: Callable[[Any], Any]) -> Any:
    """The weights after two steps."""
    random = np.random.default_rng(3)
    kernel = tf.Variable(random.normal(size=(COLUMNS, COLUMNS)).astype("float32"))
    batch = tf.constant(random.normal(size=(ROWS, COLUMNS)).astype("float32"))

    @wrapped
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(tf.tanh(x @ kernel) - x)
        kernel.assign_sub(0.1 * tape.gradient(loss, kernel))
        return loss

    for _ in range(2):
        step(batch)
    return kernel.numpy()
