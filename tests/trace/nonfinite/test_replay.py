"""Under XLA, with effects of its own, and of replicas: the first step with a gradient that is not finite is found, and
run again on copies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.trace.nonfinite.guard import Unit
from tests.trace import models
from tests.trace.nonfinite.test_nonfinite_step import BAD, ORDER, at, hidden_log, spoilt, with_loss
from tests.trace.recording import read, train
from tests.trace.training.test_replicas import found_by, started


class Careful(models.Subclassed):
    """Leaves out an update that is not finite: its training goes on as if nothing had happened."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            error = hidden_log(y, self(x, training=True))
        gradients = tape.gradient(error, self.trainable_variables)
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(each)) for each in gradients])
        safe = [tf.where(finite, each, tf.zeros_like(each)) for each in gradients]
        self.optimizer.apply_gradients(zip(safe, self.trainable_variables, strict=True))
        return {"loss": error}


def careful(**options: Any) -> Callable[[], Any]:
    def build() -> Any:
        model = Careful()
        model.build((None, 6))
        model.compile(keras.optimizers.SGD(0.01, momentum=0.9), jit_compile=True, **options)
        return model

    return build


class WarmUp(keras.callbacks.Callback):
    """Sets the learning rate before each step, as many schedules do."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.model.optimizer.learning_rate = 0.002 * (batch + 1)


BUILDERS = {
    "dropout and moving averages": with_loss(models.sequential, jit_compile=True),
    "two steps an execution": with_loss(models.functional, jit_compile=True, steps_per_execution=2),
    "a step of one's own": careful(),
}


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_that_very_step_is_recorded(build: Callable[[], Any], tmp_path: Path) -> None:
    """With the numbers that a recorder of every step would have seen."""
    x, y = spoilt()

    train(build, x, y, GradFlowCallback(tmp_path / "guarded", update_freq=100), **ORDER)
    train(build, x, y, GradFlowCallback(tmp_path / "every", update_freq=1), **ORDER)

    caught, reference = read(tmp_path / "guarded"), read(tmp_path / "every")
    assert (len(caught.steps), caught.steps[-1]) == (2, BAD)
    assert BAD in reference.steps
    for one, other in zip(at(caught, BAD), at(reference, BAD), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_the_training_is_left_as_it_was(tmp_path: Path) -> None:
    """In several stretches, and while a learning rate is changed between steps."""
    x, y = spoilt()
    x, y = np.tile(x, (8, 1)), np.concatenate([np.tile(np.abs(y), (7, 1)), y])
    build = careful()

    plain = train(build, x, y, WarmUp(), **ORDER)
    guarded = train(build, x, y, WarmUp(), GradFlowCallback(tmp_path, update_freq=1000), **ORDER)

    assert read(tmp_path).steps == (0, 7 * len(x) // 64 + BAD)
    np.testing.assert_allclose(plain.losses, guarded.losses, rtol=1e-5)
    for one, other in zip(plain.weights, guarded.weights, strict=True):
        assert np.all(np.isfinite(one))
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_what_changes_the_weights_between_steps_does_not_matter(tmp_path: Path) -> None:
    x, y = spoilt()

    class Meddling(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.model.set_weights([0.5 * weight for weight in self.model.get_weights()])

    train(careful(), x, y, Meddling(), GradFlowCallback(tmp_path / "guarded", update_freq=1000), **ORDER)
    train(careful(), x, y, Meddling(), GradFlowCallback(tmp_path / "every", update_freq=1), **ORDER)

    caught, reference = read(tmp_path / "guarded"), read(tmp_path / "every")
    assert caught.steps == (0, BAD)
    for one, other in zip(at(caught, BAD), at(reference, BAD), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_a_model_of_keras_2_is_guarded_too(tmp_path: Path) -> None:
    tf_keras = pytest.importorskip("tf_keras")
    x, y = spoilt()

    def trained(*callbacks: Any) -> list[Any]:
        tf_keras.utils.set_random_seed(7)
        model = tf_keras.Sequential([tf_keras.Input((6,)), tf_keras.layers.Dense(2, name="out")])
        model.compile(tf_keras.optimizers.SGD(0.01), hidden_log, jit_compile=True, steps_per_execution=2)
        model.fit(x, y, verbose=0, callbacks=list(callbacks), **ORDER)
        return [int(model._train_counter.numpy()), int(model.optimizer.iterations.numpy())]

    plain = trained()
    guarded = trained(GradFlowCallback(tmp_path, update_freq=100))

    assert plain == guarded
    assert read(tmp_path).steps == (1, BAD)


def test_steps_that_loss_scaling_skips_are_none(tmp_path: Path) -> None:
    """The first scales are too large for these weights, and that is how the right one is found."""
    x, y = spoilt()
    y = np.abs(y) * 2000

    def build() -> Any:
        keras.mixed_precision.set_global_policy("mixed_float16")
        try:
            model = models.functional()
            model.compile(keras.optimizers.SGD(0.01), "mse", jit_compile=True)
            return model
        finally:
            keras.mixed_precision.set_global_policy("float32")

    skipped = train(build, x, y, GradFlowCallback(tmp_path, update_freq=100), **ORDER).model.optimizer

    assert int(skipped.inner_optimizer.iterations.numpy()) < len(x) // 8
    assert read(tmp_path).steps == (0,)


def test_a_watched_step_is_guarded_too(tmp_path: Path) -> None:
    x, y = spoilt()

    def trained(decorate: Callable[[Any], Any]) -> list[Any]:
        weight = tf.Variable(np.ones([6, 2], "float32"))
        optimizer = keras.optimizers.Adam(0.01)
        optimizer.build([weight])

        @decorate
        @tf.function(jit_compile=True)
        def step(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                error = hidden_log(y, tf.matmul(x, weight))
            gradient = tape.gradient(error, weight)
            optimizer.apply_gradients([(tf.where(tf.math.is_finite(gradient), gradient, 0.0), weight)])
            return error

        losses = [step(tf.constant(x[at : at + 8]), tf.constant(y[at : at + 8])) for at in range(0, len(x), 8)]
        if hasattr(step, "flush"):
            step.flush()
        return [*losses, weight.numpy()]

    plain = trained(lambda step: step)
    watched = trained(tb_gradflow.watch(tmp_path, update_freq=100))

    for one, other in zip(plain, watched, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert read(tmp_path).steps == (0, BAD)
    assert tb_gradflow.open_log(tmp_path).report().findings[0].cause == "where_inactive_branch"


@pytest.mark.parametrize("per_execution", [1, 2])
def test_batches_that_lack_a_part_are_repeated_too(per_execution: int, tmp_path: Path) -> None:
    """As a generator may leave out the weights of its samples."""
    x, y = spoilt()

    def batches() -> Iterator[tuple[Any, Any, None]]:
        for first in range(0, len(x), 8):
            yield x[first : first + 8], y[first : first + 8], None

    def trained(*callbacks: Any) -> Any:
        keras.utils.set_random_seed(7)
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2)])
        model.compile("sgd", hidden_log, jit_compile=True, steps_per_execution=per_execution)
        model.fit(batches(), shuffle=False, verbose=0, callbacks=list(callbacks))
        return model.get_weights()

    plain = trained()
    guarded = trained(GradFlowCallback(tmp_path, update_freq=100))

    assert read(tmp_path).steps == (per_execution - 1, BAD)
    for one, other in zip(plain, guarded, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize("inner", [tf.function, tf.function(jit_compile=True)], ids=["traced", "for XLA"])
def test_a_gradient_that_an_inner_function_takes_is_looked_at_too(inner: Any, tmp_path: Path) -> None:
    x, y = spoilt()
    weight = tf.Variable(np.ones([6, 2], "float32"))

    @inner
    def gradient_of(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            error = hidden_log(y, tf.matmul(x, weight))
        return tape.gradient(error, weight)

    @tb_gradflow.watch(tmp_path, update_freq=100)
    @tf.function(jit_compile=True)
    def step(x: Any, y: Any) -> None:
        gradient = gradient_of(x, y)
        weight.assign_sub(0.01 * tf.where(tf.math.is_finite(gradient), gradient, 0.0))

    for first in range(0, len(x), 8):
        step(tf.constant(x[first : first + 8]), tf.constant(y[first : first + 8]))
    step.flush()

    assert read(tmp_path).steps == (0, BAD)


def rows_with_zero() -> Any:
    """The sixth batch has a row whose logarithm is infinite."""
    rows = np.linspace(1.0, 2.0, 80, dtype="float32").reshape(10, 8)
    rows[BAD, 3] = 0.0
    return rows


class Effects:
    """A step with effects of its own, and what it has left of them."""

    def __init__(self) -> None:
        self.weight = tf.Variable(1.0, name="weight")
        self.calls = tf.Variable(0, trainable=False)
        self.printed: list[Any] = []
        self.iterator = iter(tf.data.Dataset.from_tensor_slices(rows_with_zero()))
        self.table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)

    def step(self) -> Any:
        x = next(self.iterator)
        scale = tf.py_function(self.note, [x], tf.float32)
        seen = self.table.lookup(tf.constant(1, tf.int64))
        self.table.insert(tf.constant(1, tf.int64), seen + 1.0)
        self.calls.assign_add(1)
        tf.print("step", self.calls, output_stream=sys.stdout)
        noise = tf.nn.dropout(tf.ones([8]), 0.5)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.weight * tf.math.log(x) * noise * scale)) + 0.0 * seen
        gradient = tape.gradient(loss, self.weight)
        self.weight.assign_sub(tf.where(tf.math.is_finite(gradient), 0.01 * gradient, 0.0))
        return loss

    def note(self, x: Any) -> Any:
        self.printed.append(float(x[0]))
        return 1.0 + 0.1 * len(self.printed)

    def left(self) -> list[Any]:
        return [float(self.weight), int(self.calls), self.printed, float(self.table.lookup(tf.constant(1, tf.int64)))]


def test_a_step_with_effects_of_its_own_has_them_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def trained(wrap: Callable[[Any], Any]) -> list[Any]:
        keras.utils.set_random_seed(3)
        effects = Effects()
        step = wrap(tf.function(effects.step))
        losses = [float(step()) for _ in range(10)]
        if hasattr(step, "flush"):
            step.flush()
        return [*losses, *effects.left(), capfd.readouterr().out]

    plain = trained(lambda step: step)
    guarded = trained(tb_gradflow.watch(tmp_path / "guarded", update_freq=1000))
    trained(tb_gradflow.watch(tmp_path / "every", update_freq=1))

    np.testing.assert_equal(guarded, plain)
    caught, reference = read(tmp_path / "guarded"), read(tmp_path / "every")
    assert caught.steps == (0, BAD)
    for one, other in zip(at(caught, BAD), at(reference, BAD), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    [finding] = tb_gradflow.open_log(tmp_path / "guarded").report().findings
    assert finding.cause == "log_zero"


def test_a_step_whose_effects_cannot_be_given_to_a_second_run_is_told_of(tmp_path: Path) -> None:
    weight = tf.Variable(1.0)

    def drawn() -> Any:
        return np.float32(2.0)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            value = weight
            for _ in tf.range(3):
                value += tf.math.log(x) * tf.ensure_shape(tf.numpy_function(drawn, [], tf.float32), [])
            loss = tf.square(value)
        gradient = tape.gradient(loss, weight)
        weight.assign_sub(tf.where(tf.math.is_finite(gradient), 0.01 * gradient, 0.0))
        return loss

    watched = tb_gradflow.watch(tmp_path, update_freq=1000)(step)
    for value in (1.0, 2.0):
        watched(tf.constant(value))
    with pytest.warns(RuntimeWarning, match="cannot be run again.*PyFunc in a loop"):
        watched(tf.constant(0.0))
    watched(tf.constant(3.0))
    watched.flush()

    assert read(tmp_path).steps == (0,)


def test_a_fault_of_the_guard_is_told_and_the_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = spoilt()
    plain = train(careful(), x, y, **ORDER)

    def failing(*_: Any) -> int:
        raise RuntimeError("out of order")

    for name in ("_note", "put"):
        monkeypatch.setattr(Unit, name, failing)
        with pytest.warns(RuntimeWarning, match="out of order"):
            recorded = train(careful(), x, y, GradFlowCallback(tmp_path / name, update_freq=1000), **ORDER)
        assert recorded.losses == plain.losses
        monkeypatch.undo()


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    directory = tmp_path_factory.mktemp("mirrored")
    found = found_by(started("mirrored_guard", str(directory)))
    assert "fit" in found, found
    return directory, found


@pytest.mark.parametrize("kind", ["fit", "loop"])
def test_one_replicas_nan_is_caught_and_the_training_left_as_it_was(kind: str, mirrored: tuple[Path, Any]) -> None:
    directory, found = mirrored

    plain, guarded = found[kind]
    assert guarded == plain
    assert all(np.all(np.isfinite(each)) for each in plain[1])
    caught, reference = read(directory / kind), read(directory / f"{kind}_every")
    assert caught.steps == (0, BAD)
    for one, other in zip(at(caught, BAD), at(reference, BAD), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
