"""Eager ops whose results have another shape than TensorFlow declares."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

import tb_gradflow
from tb_gradflow.recorded import Recorded


def test_a_kernel_may_return_another_shape_than_is_declared(tmp_path: Path) -> None:
    """`FusedBatchNormV3` returns a scalar where its shape function says that there is a vector."""
    recorded = Recorded(lambda: str(tmp_path))
    scale = tf.Variable(tf.ones(3))
    recorded.start()
    try:
        for _ in range(2):
            with tf.GradientTape() as tape:
                normed = tf.compat.v1.nn.fused_batch_norm(tf.random.normal([2, 4, 4, 3]), scale, tf.zeros(3))[0]
                loss = tf.reduce_mean(tf.square(normed))
            scale.assign_sub(0.1 * tape.gradient(loss, scale))
    finally:
        recorded.stop()

    [name] = recorded.names
    [variable] = tb_gradflow.open_log(tmp_path / name).report().diagnosis.variables
    assert variable.status == "connected"
