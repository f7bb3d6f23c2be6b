"""A training with the recorder is the training without it, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_gradflow import GradFlowCallback
from tests.trace import models
from tests.trace.recording import Training, data, read, train

BUILDERS = [
    models.functional,
    models.sequential,
    models.subclassed,
    models.own_step,
    models.compiled_step,
    models.gan,
    models.partly_built,
    models.halves,
    models.attention,
    models.physics,
]


def both(directory: Path, build: Callable[[], Any], x: Any, y: Any, **fit: Any) -> tuple[Training, Training]:
    plain = train(build, x, y, **fit)
    with_recorder = train(build, x, y, GradFlowCallback(str(directory), update_freq=2), **fit)
    return plain, with_recorder


def assert_identical(one: Training, other: Training) -> None:
    assert one.losses == other.losses
    for first, second in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(first, second)


def _scale_times_a_rate() -> Any:
    layers = [keras.layers.Dense(5, "tanh"), keras.layers.BatchNormalization(), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((6,)), *layers])
    model.compile("sgd", "mse")
    return model


def test_what_the_optimizer_merges_with_a_gradient_is_left_to_it(tmp_path: Path) -> None:
    """With numbers for which the two ways to round were seen to differ: most have the same bits."""
    x, y = data(outputs=1, rows=96)
    fit = {"batch_size": 8, "shuffle": False}
    plain = train(_scale_times_a_rate, x, y, **fit)

    recorder = GradFlowCallback(tmp_path, update_freq=1, catch_nonfinite=False)

    assert_identical(plain, train(_scale_times_a_rate, x, y, recorder, **fit))


def _gated() -> Any:
    layers = [keras.layers.Dense(16, "hard_silu"), keras.layers.Dense(16, "hard_silu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((6,)), *layers])
    model.compile("adam", "mse")
    return model


def test_what_is_merged_where_the_size_of_a_batch_is_unknown_is_left_to_the_optimizer(tmp_path: Path) -> None:
    """A last batch that is smaller, and a gate that is divided by a constant: here the bits were seen to differ."""
    x = np.random.RandomState(0).randn(61, 6).astype("float32")
    fit = {"batch_size": 8, "epochs": 2, "shuffle": False}
    plain = train(_gated, x, x[:, :1] ** 2, **fit)

    assert_identical(plain, train(_gated, x, x[:, :1] ** 2, GradFlowCallback(tmp_path, update_freq=1), **fit))


class Clipped(keras.Sequential):
    """A step that clips what it has divided, by the norm of all gradients."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(self(x, training=True) - y))
        gradients = [each / 3.0 for each in tape.gradient(error, self.trainable_variables)]
        clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
        self.optimizer.apply_gradients(zip(clipped, self.trainable_variables, strict=True))
        return {"error": error}


def _clipped() -> Any:
    model = Clipped([keras.Input((6,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01))
    return model


def test_gradients_that_are_clipped_by_the_norm_of_all(tmp_path: Path) -> None:
    """TensorFlow's optimizer reorders the product with the learning rate, through the `Identity` behind it: here the
    bits were seen to differ."""
    x, y = data(outputs=1, rows=64)

    plain, recorded = both(tmp_path, _clipped, x, 5 * y, epochs=4, shuffle=False)

    assert_identical(plain, recorded)
    assert read(tmp_path).trace.clips


@pytest.mark.parametrize("build", BUILDERS)
def test_losses_and_weights_are_identical(build: Callable[[], Any], tmp_path: Path) -> None:
    """With a last batch that is smaller than the others."""
    x, y = data(outputs=2, rows=72)

    plain, recorded = both(tmp_path, build, x, y, epochs=2, shuffle=True)

    assert_identical(plain, recorded)
    assert read(tmp_path).steps == (0, 2, 4, 6, 8)


def two_steps_an_execution() -> Any:
    model = models.functional()
    model.compile("adam", "mse", steps_per_execution=2)
    return model


def test_several_steps_an_execution(tmp_path: Path) -> None:
    x, y = data(rows=64)

    plain, recorded = both(tmp_path, two_steps_an_execution, x, y, epochs=2)

    assert_identical(plain, recorded)
    assert read(tmp_path).steps == (1, 3, 5, 7)


def test_a_last_execution_with_fewer_steps(tmp_path: Path) -> None:
    """Steps have the numbers that the optimizer has counted. Before Keras 3.7 such an execution ends with an error in
    the midst of its steps, and what it has changed by then is another thing each time."""
    x, y = data(rows=72)
    counted: list[int] = []
    count: Any = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: counted.append(int(count.model.optimizer.iterations.numpy()))
    )

    plain = train(two_steps_an_execution, x, y, epochs=2)
    recorded = train(two_steps_an_execution, x, y, GradFlowCallback(tmp_path, update_freq=2), count, epochs=2)

    if tuple(map(int, keras.__version__.split(".")[:2])) < (3, 7):
        assert read(tmp_path).steps == (1, 3, counted[0] + 1, counted[0] + 3)
    else:
        assert_identical(plain, recorded)
        assert read(tmp_path).steps == (1, 3, 4, 6, 8, 9)


def test_half_precision(tmp_path: Path) -> None:
    x, y = data(rows=64)

    def build() -> Any:
        keras.mixed_precision.set_global_policy("mixed_float16")
        try:
            return models.sequential()
        finally:
            keras.mixed_precision.set_global_policy("float32")

    plain, recorded = both(tmp_path, build, x, y, epochs=2)

    assert_identical(plain, recorded)
    assert len(read(tmp_path).steps) == 4


@pytest.mark.parametrize("build", [models.functional, models.own_step])
def test_xla_agrees_to_rounding(build: Callable[[], Any], tmp_path: Path) -> None:
    """A program that is fused differently rounds differently."""
    x, y = data(rows=64)

    def compiled() -> Any:
        model = build()
        model.compile("adam", "mse", jit_compile=True)
        return model

    plain, recorded = both(tmp_path, compiled, x, y, epochs=2)

    np.testing.assert_allclose(plain.losses, recorded.losses, rtol=1e-6)
    for first, second in zip(plain.weights, recorded.weights, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-6)
    log = read(tmp_path)
    assert log.steps == (0, 2, 4, 6)
    assert np.isfinite(log.gradients[0]).all()


def test_a_second_fit_goes_on_in_the_same_log(tmp_path: Path) -> None:
    x, y = data(rows=64)

    def twice(*callbacks: Any) -> list[Any]:
        keras.utils.set_random_seed(7)
        model = models.functional()
        model.fit(x, y, batch_size=16, verbose=0, callbacks=list(callbacks))
        model.fit(x, y, batch_size=16, verbose=0, callbacks=list(callbacks))
        return [weight.numpy() for weight in model.weights]

    for first, second in zip(twice(), twice(GradFlowCallback(str(tmp_path), update_freq=3)), strict=True):
        np.testing.assert_array_equal(first, second)
    log = read(tmp_path)
    assert log.steps == (0, 3, 6)
    assert len(log.traces) == 1


def test_validation_and_other_callbacks(tmp_path: Path) -> None:
    """Keras's TensorBoard callback writes into the same directory."""
    x, y = data(rows=64)
    fit: dict[str, Any] = {"epochs": 3, "validation_data": (x, y)}

    def others(name: str) -> list[Any]:
        return [keras.callbacks.TensorBoard(str(tmp_path / name)), keras.callbacks.EarlyStopping("loss", patience=1)]

    plain = train(models.functional, x, y, *others("plain"), **fit)
    recorder = GradFlowCallback(str(tmp_path / "run"), update_freq="epoch")
    recorded = train(models.functional, x, y, *others("run"), recorder, **fit)

    assert_identical(plain, recorded)
    assert read(tmp_path / "run").steps == (0, 4, 8)


def test_the_model_keeps_its_own_compiled_function(tmp_path: Path) -> None:
    x, y = data(rows=32)
    seen = []

    class Look(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            seen.append(self.model.train_function)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append(self.model.train_function)

    trained = train(models.functional, x, y, Look(), GradFlowCallback(str(tmp_path / "guarded"), update_freq=2))

    # `Look` runs before the recorder, so between its steps it sees what the recorder left.
    assert seen[0] is seen[-1] is trained.model.train_function

    seen.clear()
    unguarded = GradFlowCallback(str(tmp_path / "run"), update_freq=2, catch_nonfinite=False)
    ran = train(models.functional, *data(rows=96), Look(), unguarded)
    assert ran.model.train_function is seen[0]
    trained.model.fit(x, y, verbose=0)
    trained.model.compile("sgd", "mse")
    trained.model.fit(x, y, verbose=0)
    assert not hasattr(trained.model.train_function, "function")


def test_random_ops_with_a_generator_of_their_own_are_noted(tmp_path: Path) -> None:
    class Noise(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return x + tf.random.gamma(tf.shape(x), 2.0)

    def build() -> Any:
        x = keras.Input((6,))
        model = keras.Model(x, keras.layers.Dense(2)(Noise()(x)))
        model.compile("sgd", "mse")
        return model

    train(build, *data(), GradFlowCallback(str(tmp_path), catch_nonfinite=False))

    [note] = read(tmp_path).trace.notes
    assert "seeded random numbers with RandomGamma, whose generator" in note
