"""Edits of steps that draw random numbers: the step is compared for the same ones, or not at all."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tests.trace.explain.test_edits_of_loops import tried_in

DRAWN = {
    "TensorFlow": "tf.random.normal(x.shape)",
    "NumPy": "np.random.normal(size=x.shape).astype('float32')",
    "a generator of NumPy": "generator.normal(size=x.shape).astype('float32')",
    "a generator of Python": "pythons.gauss(0.0, 1.0)",
    "dropout": "dropout(x, training=True)",
}

LOOP = """
import os, random
import keras, numpy as np, tensorflow as tf

generator, pythons = np.random.default_rng(1), random.Random(1)
dropout = keras.layers.Dropout(0.5)
X = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")


def noisy():
    model, optimizer = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]), keras.optimizers.SGD(0.001)
    scale = tf.Variable(0.7, name="scale")
    variables = [*model.trainable_variables, scale]

    def step(x):
        with tf.GradientTape() as tape:  # noisy
            loss = tf.reduce_mean((model(x + 2.0 * ({drawn})) * tf.round(scale) - 1.0) ** 2)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients((g, v) for g, v in zip(gradients, variables) if g is not None)
        return loss

    for _ in range(4):
        step(tf.constant(X))


noisy()
"""


@pytest.mark.parametrize("name", DRAWN)
def test_an_edit_is_compared_for_the_same_random_numbers(tmp_path: Path, name: str) -> None:
    finding = tried_in(tmp_path, LOOP.format(drawn=DRAWN[name]))["noisy"]

    assert finding.tried is not None, finding.not_tried
    before, after = finding.tried.loss
    assert before == pytest.approx(after, rel=1e-5)
    assert "forward" in finding.tried.keeps
    assert finding.tried.trained is not None
    assert finding.tried.trained.loss[0] == pytest.approx(finding.tried.trained.without[0], rel=1e-5)


def test_what_draws_other_numbers_each_time_is_not_compared(tmp_path: Path) -> None:
    """Nobody can hold equal what the operating system draws."""
    drawn = "np.frombuffer(os.urandom(128), 'uint8').reshape(32, 4).astype('float32') / 128 - 1"

    finding = tried_in(tmp_path, LOOP.format(drawn=drawn))["noisy"]

    assert finding.tried is not None
    assert finding.tried.works
    assert finding.tried.loss[0] is None
    assert finding.tried.trained is not None
    assert set(finding.tried.trained.without) == {None}
    assert "forward" not in finding.tried.keeps


GENERATORS: dict[str, Any] = {
    "Generator": (np.random.default_rng(3), lambda generator: generator.normal()),
    "RandomState": (np.random.RandomState(3), lambda generator: generator.normal()),
    "Random": (random.Random(3), lambda generator: generator.gauss(0.0, 1.0)),
    "SystemRandom": (random.SystemRandom(), lambda generator: generator.random()),
}


@pytest.mark.parametrize("try_fixes", [True, False])
@pytest.mark.parametrize("name", GENERATORS)
def test_explain_leaves_the_random_numbers_of_the_program_as_they_are(name: str, *, try_fixes: bool) -> None:
    generator, draw = GENERATORS[name]
    weight = tf.Variable(np.ones(4), name="weight")

    def loss() -> tf.Tensor:
        return tf.reduce_sum(tf.round(weight) * draw(generator) * tf.random.normal([4], dtype=tf.float64))

    tf.random.set_seed(5)
    following = tf.compat.v1.random.get_seed(None)
    tf.random.set_seed(5)
    seeds = tf.random.get_global_generator().state.numpy().tolist()
    states = [each.__getstate__() if name != "SystemRandom" else None for each in (generator,)]
    report = tb_gradflow.explain(loss, variables=[weight], try_fixes=try_fixes)

    assert [each.cause for each in report.findings] == ["nondiff_rounding"]
    assert tf.random.get_global_generator().state.numpy().tolist() == seeds
    assert tf.compat.v1.random.get_seed(None) == following
    assert str([each.__getstate__() if name != "SystemRandom" else None for each in (generator,)]) == str(states)
