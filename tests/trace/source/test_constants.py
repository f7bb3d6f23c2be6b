"""What is constant in a step, however TensorFlow makes it."""

from __future__ import annotations

import pytest
import tensorflow as tf

import tb_gradflow


@pytest.mark.parametrize("rows", [8, 400])
def test_the_zeros_of_a_second_derivative_are_known_in_small_and_large_batches(rows: int) -> None:
    """Constants of more than a thousand elements are ops of their own; the slice of a column is put back."""
    kernel = tf.Variable([[0.5, -0.4, 0.8, 0.3], [0.2, 0.7, -0.6, 0.1]], name="kernel")
    out = tf.Variable([[0.3], [-0.5], [0.6], [0.2]], name="out")
    viscosity = tf.Variable(0.1, name="viscosity")
    points = tf.random.stateless_uniform([rows, 2], [1, 2], -1.0, 1.0)

    def residual() -> tf.Tensor:
        x, t = points[:, 0:1], points[:, 1:2]
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            u = tf.nn.relu(tf.stack([x[:, 0], t[:, 0]], axis=1) @ kernel) @ out
            u_x = tape.gradient(u, x)
        u_xx = tape.gradient(u_x, x)
        return tf.reduce_mean(tf.square(u - u_x - viscosity * u_xx))

    report = tb_gradflow.explain(residual, variables=[kernel, out, viscosity])

    [finding] = report.findings
    assert report.variables["viscosity"].status == "zero"
    assert (finding.cause, finding.variables) == ("second_order_missing", ("viscosity",))
    assert "relu" in finding.message.lower()
