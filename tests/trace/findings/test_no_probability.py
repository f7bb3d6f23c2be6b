"""A loss of probabilities that is given the output of a linear layer, and losses that are given what they take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.serve.reports.report import Report

Dense = keras.layers.Dense

# Made within a test: a layer draws the seeds of its weights when it is made.
Ends = Callable[[], list[Any]]

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(32, 4)).astype(np.float32)
CLASSES = RANDOM.integers(0, 3, 32)
LABELS = {1: (CLASSES > 1).astype(np.float32)[:, None], 3: np.eye(3, dtype=np.float32)[CLASSES]}


def by_hand(labels: Any, given: Any) -> Any:
    p = tf.clip_by_value(given, 1e-6, 1.0 - 1e-6)
    return -tf.reduce_mean(labels * tf.math.log(p) + (1.0 - labels) * tf.math.log(1.0 - p))


def trained(log_dir: Path, ends: Ends, loss: Any, outputs: int) -> Report:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), Dense(8, "relu", name="hidden"), *ends()])
    model.compile(keras.optimizers.SGD(1e-3), loss)
    recorder = tb_gradflow.GradFlowCallback(str(log_dir), update_freq=1)
    model.fit(X, LABELS[outputs], batch_size=32, verbose=0, callbacks=[recorder])
    return tb_gradflow.open_log(log_dir).report()


@pytest.mark.parametrize(
    ("ends", "loss", "outputs"),
    [
        (lambda: [Dense(1, name="last")], "binary_crossentropy", 1),
        (lambda: [Dense(1, "relu", bias_initializer="ones", name="last")], "binary_crossentropy", 1),
        (lambda: [Dense(1, use_bias=False, name="last")], "binary_crossentropy", 1),
        (lambda: [Dense(3, name="last")], "categorical_crossentropy", 3),
        (lambda: [Dense(3, name="last")], by_hand, 3),
    ],
    ids=["binary", "relu", "no bias", "categorical", "by hand"],
)
def test_an_output_without_bounds_is_no_probability(tmp_path: Path, ends: Ends, loss: Any, outputs: int) -> None:
    report = trained(tmp_path, ends, loss, outputs)
    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("saturation_clip", "warning")
    assert "layer `last`" in finding.message
    assert "from_logits=True" in finding.fix
    assert {each.status for each in report.variables.values()} == {"connected"}


@pytest.mark.parametrize(
    ("ends", "loss", "outputs"),
    [
        (lambda: [Dense(1, "sigmoid")], "binary_crossentropy", 1),
        (lambda: [Dense(1)], keras.losses.BinaryCrossentropy(from_logits=True), 1),
        (lambda: [Dense(3, "softmax")], "categorical_crossentropy", 3),
        (
            lambda: [Dense(3), keras.layers.Softmax(), keras.layers.Lambda(lambda p: p + 0.0)],
            "categorical_crossentropy",
            3,
        ),
        (lambda: [Dense(3, "sigmoid")], by_hand, 3),
        (lambda: [Dense(3, "softmax"), Dense(3, use_bias=False, kernel_initializer="identity")], by_hand, 3),
        (lambda: [Dense(3)], lambda y, p: tf.reduce_mean(tf.square(y - tf.clip_by_value(p, 0.0, 1.0))), 3),
    ],
    ids=["sigmoid", "logits", "softmax", "softmax in two", "sigmoid by hand", "a matrix of chances", "no logarithm"],
)
def test_a_probability_is_fine(tmp_path: Path, ends: Ends, loss: Any, outputs: int) -> None:
    assert trained(tmp_path, ends, loss, outputs).findings == ()
