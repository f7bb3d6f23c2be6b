"""The first step with a gradient that is not finite is recorded, that very step, and the training stays what it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tests.trace import models
from tests.trace.recording import Recorded, Training, read, train

BAD = 5
"""The batch that has a label below zero, of which the losses here take a logarithm."""

ROWS = 72

ORDER = {"epochs": 1, "batch_size": 8, "shuffle": False}


def hidden_log(labels: Any, outputs: Any) -> Any:
    """The logarithm is hidden where it is not finite; its derivative is not."""
    logarithm = tf.math.log(tf.maximum(labels, 0.0) * (1 + tf.square(outputs)))
    return tf.reduce_mean(tf.square(outputs) + tf.where(labels < 0, 0.0, logarithm))


def spoilt() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(ROWS, 6)).astype("float32")
    y = rng.uniform(1.0, 2.0, size=(ROWS, 2)).astype("float32")
    y[8 * BAD] = -1.0
    return x, y


def with_loss(build: Callable[[], Any], **options: Any) -> Callable[[], Any]:
    def built() -> Any:
        model = build()
        model.compile(keras.optimizers.Adam(0.01), hidden_log, **options)
        return model

    return built


class Nested(models.Subclassed):
    """Its training step is a compiled function of its own, with another one in it."""

    @tf.function
    def train_step(self, data: Any) -> Any:
        x, y = data
        error, gradients = self.differentiated(x, y)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": error}

    @tf.function
    def differentiated(self, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            error = hidden_log(y, self(x, training=True))
        return error, tape.gradient(error, self.trainable_variables)


class TwoUpdates(models.Subclassed):
    """Updates its second layer before the loss of the first one is taken."""

    def compile(self, *args: Any, **options: Any) -> None:
        super().compile(keras.optimizers.SGD(0.01), *args, **options)
        self.other = keras.optimizers.Adam(0.01)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(self(x, training=True)))
        gradients = tape.gradient(error, self.second.trainable_variables)
        self.other.apply_gradients(zip(gradients, self.second.trainable_variables, strict=True))
        with tf.GradientTape() as tape:
            error = hidden_log(y, self(x, training=True))
        gradients = tape.gradient(error, self.first.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.first.trainable_variables, strict=True))
        return {"loss": error}


def two_updates() -> Any:
    model = TwoUpdates()
    model.compile()
    return model


class WithMemory(models.Subclassed):
    """Changes a large variable that its outputs depend on, whatever the gradients are, once they are taken."""

    def build(self, shape: Any) -> None:
        self.memory = self.add_weight(shape=(400, 400), initializer="ones", trainable=False)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            error = hidden_log(y, self(x, training=True) * tf.reduce_mean(self.memory))
        gradients = tape.gradient(error, self.trainable_variables)
        self.memory.assign(self.memory * 0.9)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": error}


def with_memory() -> Any:
    model = WithMemory()
    model.compile(keras.optimizers.AdamW(0.01, weight_decay=0.1))
    return model


def nested() -> Any:
    model = Nested()
    model.compile(keras.optimizers.Adam(0.01))
    return model


BUILDERS = {
    "dropout and moving averages": with_loss(models.sequential),
    "two steps an execution": with_loss(models.functional, steps_per_execution=2),
    "nested functions": nested,
    "two updates": two_updates,
    "updates without a gradient": with_memory,
}


def assert_same(one: Training, other: Training) -> None:
    np.testing.assert_array_equal(one.losses, other.losses)
    for first, second in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(first, second)


def at(recorded: Recorded, step: int) -> tuple[Any, Any]:
    place = recorded.steps.index(step)
    return recorded.gradients[place], recorded.losses[place]


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_that_very_step_is_recorded(build: Callable[[], Any], tmp_path: Path) -> None:
    """With the numbers that a recorder of every step would have seen."""
    x, y = spoilt()

    plain = train(build, x, y, **ORDER)
    guarded = train(build, x, y, GradFlowCallback(tmp_path / "guarded", update_freq=100), **ORDER)
    every = train(build, x, y, GradFlowCallback(tmp_path / "every", update_freq=1, catch_nonfinite=False), **ORDER)

    assert_same(plain, guarded)
    assert_same(plain, every)
    caught, reference = read(tmp_path / "guarded"), read(tmp_path / "every")
    step = caught.steps[-1]
    assert (len(caught.steps), step) == (2, BAD)
    if BAD in reference.steps:  # with two steps an execution the second one is recorded
        (statistics, losses), (expected, expected_losses) = at(caught, step), at(reference, step)
        np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
        # A recorder of every step does not measure the other elements of a tensor some of which are not finite.
        known = ~np.isnan(expected)
        np.testing.assert_allclose(statistics[known], expected[known], rtol=1e-5)
        assert np.all(known[:, 4:])


def test_it_is_told_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    x, y = spoilt()

    train(with_loss(models.functional), x, y, GradFlowCallback(tmp_path, update_freq=100), **ORDER)

    assert "tf.where" in caplog.text
    assert "hides their value but not their gradient" in caplog.text
    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert finding.cause == "where_inactive_branch"


def test_without_the_option_only_the_cadence_counts(tmp_path: Path) -> None:
    x, y = spoilt()

    train(
        with_loss(models.functional), x, y, GradFlowCallback(tmp_path, update_freq=100, catch_nonfinite=False), **ORDER
    )

    assert read(tmp_path).steps == (0,)


def test_steps_that_loss_scaling_skips_are_none(tmp_path: Path) -> None:
    """The first scales are too large for these weights, and that is how the right one is found."""
    x, y = spoilt()
    y = np.abs(y) * 2000

    def build() -> Any:
        keras.mixed_precision.set_global_policy("mixed_float16")
        try:
            model = models.sequential()
            model.compile(keras.optimizers.Adam(0.01), "mse")
            return model
        finally:
            keras.mixed_precision.set_global_policy("float32")

    plain = train(build, x, y, **ORDER)
    guarded = train(build, x, y, GradFlowCallback(tmp_path, update_freq=100), **ORDER)

    assert_same(plain, guarded)
    assert read(tmp_path).steps == (0,)


def test_a_step_that_would_be_noticed_twice_is_noticed_once(tmp_path: Path) -> None:
    x, y = spoilt()
    calls = []

    def counted(labels: Any) -> Any:
        calls.append(labels.shape)
        return labels

    def counting(labels: Any, outputs: Any) -> Any:
        seen = tf.ensure_shape(tf.numpy_function(counted, [labels], tf.float32), labels.shape)
        return hidden_log(seen, outputs)

    def build() -> Any:
        model = models.functional()
        model.compile("sgd", counting)
        return model

    train(build, x, y, GradFlowCallback(tmp_path, update_freq=100), **ORDER)

    assert len(calls) == ROWS // 8
    assert read(tmp_path).steps == (0, BAD)


def test_a_gradient_in_a_function_that_xla_compiles_inside_the_step_is_caught(tmp_path: Path) -> None:
    x, y = spoilt()

    class Compiled(models.Subclassed):
        def train_step(self, data: Any) -> Any:
            error, gradients = self.differentiated(*data)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            return {"loss": error}

        @tf.function(jit_compile=True)
        def differentiated(self, x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                error = hidden_log(y, self(x, training=True))
            return error, tape.gradient(error, self.trainable_variables)

    def build() -> Any:
        model = Compiled()
        model.build((None, 6))
        model.compile("sgd")
        return model

    plain = train(build, x, y, **ORDER)
    guarded = train(build, x, y, GradFlowCallback(tmp_path, update_freq=100), **ORDER)

    np.testing.assert_allclose(plain.losses, guarded.losses, rtol=1e-5)
    assert read(tmp_path).steps == (0, BAD)


@pytest.mark.parametrize("as_method", [False, True])
def test_a_watched_step_is_guarded_too(as_method: bool, tmp_path: Path) -> None:
    x, y = spoilt()

    def trained(decorate: Callable[[Any], Any]) -> list[Any]:
        weight = tf.Variable(np.ones([6, 2], "float32"))
        optimizer = keras.optimizers.Adam(0.01)
        optimizer.build([weight])

        class Loop:
            @decorate
            def step(self, x: Any, y: Any) -> Any:
                return taken(x, y)

        def taken(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                error = hidden_log(y, tf.matmul(x, weight))
            optimizer.apply_gradients([(tape.gradient(error, weight), weight)])
            return error

        step = Loop().step if as_method else decorate(taken)
        losses = [step(tf.constant(x[at : at + 8]), tf.constant(y[at : at + 8])) for at in range(0, ROWS, 8)]
        if hasattr(step, "flush"):
            step.flush()
        return [*losses, weight.numpy()]

    plain = trained(tf.function)
    watched = trained(tb_gradflow.watch(tmp_path, update_freq=100))

    for one, other in zip(plain, watched, strict=True):
        np.testing.assert_array_equal(one, other)
    assert read(tmp_path).steps == (0, BAD)
    assert tb_gradflow.open_log(tmp_path).report().findings[0].cause == "where_inactive_branch"
