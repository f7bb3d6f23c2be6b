"""Functions whose parts are in the wrong order: a straight-through estimator, and the limits of a clip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.record.report import Finding

RANDOM = np.random.default_rng(5)
X = tf.constant(RANDOM.normal(size=(16, 8)), tf.float32)
KERNEL = tf.Variable(RANDOM.normal(size=(8, 4)), dtype=tf.float32, name="kernel")


PROGRAM = """
import tensorflow as tf

def loss():
    soft = tf.nn.softmax(X @ KERNEL)
    LINE
    return tf.reduce_mean(tf.square(out - 0.3))
"""


def explained(directory: Path, line: str) -> Finding:
    """The only finding of a loss with this line, in a file of its own."""
    text = PROGRAM.replace("LINE", line)
    file = directory / "wrong.py"
    file.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {"X": X, "KERNEL": KERNEL}
    exec(compile(text, file, "exec"), names)
    [finding] = tb_gradflow.explain(names["loss"], variables=[KERNEL], try_fixes=True, terms=False).findings
    return finding


HARD = "tf.one_hot(tf.argmax(soft, -1), 4)"


@pytest.mark.parametrize(
    "wrong",
    [
        f"soft + tf.stop_gradient({HARD}) - soft",
        f"tf.stop_gradient({HARD}) + soft - soft",
        f"tf.stop_gradient({HARD}) - soft + soft",
    ],
)
def test_an_estimator_that_stops_the_wrong_part_is_given_the_gradient_of_the_identity(
    tmp_path: Path, wrong: str
) -> None:
    """To stop the other side instead, as for a sample, would pass the gradient with the wrong sign."""
    finding = explained(tmp_path, f"out = {wrong}")

    assert finding.cause == "gradient_cancellation"
    assert "straight-through estimator" in finding.message
    assert finding.edit is not None
    assert finding.edit.after.strip() == f"out = soft + tf.stop_gradient({HARD} - soft)"
    assert finding.tried is not None
    assert finding.tried.works
    with tf.GradientTape() as tape:
        soft = tf.nn.softmax(X @ KERNEL)
        right = soft + tf.stop_gradient(tf.one_hot(tf.argmax(soft, -1), 4) - soft)
        value = tf.reduce_mean(tf.square(right - 0.3))
    expected = tf.norm(tape.gradient(value, KERNEL))
    assert finding.tried.gradient_norm[0].norm == pytest.approx(float(expected), rel=1e-4)


def test_noise_that_is_taken_back_with_its_mean_is_no_estimator(tmp_path: Path) -> None:
    finding = explained(tmp_path, "out = soft + tf.random.stateless_normal([16, 4], [1, 2]) - soft")

    assert finding.cause == "gradient_cancellation"
    assert "straight-through" not in finding.message


@pytest.mark.parametrize("limits", ["1.0, -1.0", "clip_value_max=-1.0, clip_value_min=1.0"])
def test_limits_in_the_wrong_order_are_exchanged(tmp_path: Path, limits: str) -> None:
    finding = explained(tmp_path, f"out = tf.clip_by_value(soft, {limits})")

    assert finding.cause == "saturation_clip"
    assert "1, is greater than the upper limit, -1" in finding.message
    assert finding.edit is not None
    assert ("1.0, -1.0)" in finding.edit.before) == ("-1.0, 1.0)" in finding.edit.after)
    assert finding.tried is not None
    assert finding.tried.works


def test_limits_in_order_are_not_exchanged(tmp_path: Path) -> None:
    finding = explained(tmp_path, "out = tf.clip_by_value(soft, 2.0, 3.0)")

    assert finding.cause == "saturation_clip"
    assert "upper limit" not in finding.message


def test_a_choice_that_goes_into_a_cross_entropy_becomes_probabilities(tmp_path: Path) -> None:
    """It clips ones and zeros: a straight-through estimator in front of it gets no gradient either."""
    chosen = (
        f"out = tf.keras.losses.CategoricalCrossentropy()(tf.eye(4, batch_shape=[4]), tf.reshape({HARD}, [4, 4, 4]))"
    )

    finding = explained(tmp_path, chosen)

    assert finding.cause == "nondiff_index"
    assert finding.edit is not None
    assert finding.edit.after.strip() == chosen.replace(HARD, "soft")
    assert finding.tried is not None
    assert finding.tried.works


HIDDEN = """
import tensorflow as tf

class Chosen(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(4, activation="softmax")

    def call(self, x):
        soft = self.dense(x)
        hard = tf.one_hot(tf.argmax(soft, -1), 4)
        return soft + tf.stop_gradient(hard) - soft
"""


def test_a_softmax_in_front_of_such_an_estimator_is_not_accused_of_saturation(tmp_path: Path) -> None:
    """While a model is fitted, gradients inside a layer are not recorded."""
    file = tmp_path / "chosen.py"
    file.write_text(HIDDEN, encoding="utf-8")
    names: dict[str, type] = {}
    exec(compile(HIDDEN, file, "exec"), names)
    model = tf.keras.Sequential([tf.keras.Input((8,)), names["Chosen"](), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    model.fit(X, X[:, :1], verbose=0, callbacks=[tb_gradflow.GradFlowCallback(str(tmp_path / "log"), tensors="layers")])

    [finding] = tb_gradflow.open_log(tmp_path / "log").report().findings
    assert finding.cause == "gradient_cancellation"
    assert finding.op is not None
    assert finding.op.type == "Sub"


def test_statistics_that_a_batch_normalisation_stored_earlier_in_the_step_are_no_lost_path() -> None:
    """A network that is applied to two views of the batch reads, the second time, what the first time stored."""
    network = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 3)),
            tf.keras.layers.Conv2D(4, 3, use_bias=False),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Conv2D(2, 3),
        ]
    )
    views = [tf.constant(RANDOM.normal(size=(4, 8, 8, 3)), tf.float32) for _ in range(2)]

    def loss() -> tf.Tensor:
        one, other = (network(view, training=True) for view in views)
        return tf.reduce_mean(tf.square(one - other - 0.5))

    findings = tb_gradflow.explain(loss, variables=network.trainable_variables).findings

    assert [finding for finding in findings if finding.cause == "nondiff_op_input"] == []
