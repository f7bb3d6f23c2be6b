"""A maximum or a minimum over the outputs of a softmax, while these are all equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import tb_gradflow

X = np.random.default_rng(0).normal(size=(32, 6)).astype("float32")


def of_confidence(directory: Path, kernel: str, reduced: Any) -> tb_gradflow.Report:
    """Three steps that raise the confidence of a classifier."""
    keras.utils.set_random_seed(1)
    net = keras.Sequential([keras.Input((6,)), layers.Dense(5, kernel_initializer=kernel, name="scores")])
    optimizer = keras.optimizers.SGD(0.1)

    @tb_gradflow.watch(directory, update_freq=1)
    @tf.function
    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(reduced(tf.nn.softmax(net(x))))
        gradients = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))

    for _ in range(3):
        step(X)
    step.flush()
    return tb_gradflow.open_log(directory).report()


def largest(p: Any) -> Any:
    return tf.reduce_max(p, axis=-1)


def smallest(p: Any) -> Any:
    return tf.reduce_min(p, axis=-1)


@pytest.mark.parametrize(("reduced", "which"), [(largest, "largest"), (smallest, "smallest")])
def test_equal_outputs_are_named_and_an_experiment_shows_the_kink(tmp_path: Path, reduced: Any, which: str) -> None:
    report = of_confidence(tmp_path, "zeros", reduced)

    [finding] = [each for each in report.findings if each.severity != "info"]
    assert finding.cause == "normalised_then_summed"
    assert "in this step all outputs of `tf.nn.softmax`" in finding.message
    assert f"takes the {which}" in finding.message
    assert "constant" not in finding.message
    told = [each.text for each in finding.evidence]
    assert any("along random signs" in text and "the other way" in text for text in told)
    # What is added to all scores alike changes nothing.
    assert not any("the gradient of" in text and "instead of" in text for text in told)


def test_a_random_layer_has_no_equal_outputs(tmp_path: Path) -> None:
    report = of_confidence(tmp_path, "glorot_uniform", largest)

    assert not [each for each in report.findings if each.severity != "info"]


def test_a_sum_is_still_told_as_one(tmp_path: Path) -> None:
    report = of_confidence(tmp_path, "zeros", tf.reduce_sum)

    [finding] = [each for each in report.findings if each.severity != "info"]
    assert finding.cause == "normalised_then_summed"
    assert "which sums to one, so it is constant" in finding.message
