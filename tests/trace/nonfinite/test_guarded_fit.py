"""What a guarded `fit` raises, returns, counts and leaves behind is what it does without the recorder."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tests.trace.recording import read

BAD = 5
X = np.random.default_rng(3).normal(size=(64, 6)).astype("float32")
Y = np.ones([64, 1], "float32")


def network(cls: Any = keras.Model, *, xla: bool = False) -> Any:
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(7)
    inputs = keras.Input((6,))
    model = cls(inputs, keras.layers.Dense(1)(keras.layers.Dropout(0.2)(inputs)))
    model.compile("adam", "mse", jit_compile=xla)
    return model


def guarded(directory: Path) -> GradFlowCallback:
    """Only the first step is recorded."""
    return GradFlowCallback(directory, update_freq=10**6)


def both(directory: Path, train: Callable[[list[Any]], Any]) -> tuple[Any, Any]:
    """What a training answers without the recorder and with it, which must not warn."""
    plain = train([])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*tb_gradflow.*")
        return plain, train([guarded(directory)])


@pytest.mark.parametrize("xla", [False, True], ids=["", "XLA"])
def test_an_error_in_the_data_is_raised_where_it_is(xla: bool, tmp_path: Path) -> None:
    def checked(x: Any, y: Any) -> Any:
        with tf.control_dependencies([tf.debugging.assert_less(x[0, 0], 100.0, "out of range")]):
            return tf.identity(x), y

    spoilt = X.copy()
    spoilt[8 * BAD] = 1000.0

    def train(callbacks: list[Any]) -> Any:
        model = network(xla=xla)
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of range"):
            model.fit(
                tf.data.Dataset.from_tensor_slices((spoilt, Y)).batch(8).map(checked), verbose=0, callbacks=callbacks
            )
        return int(model.optimizer.iterations.numpy())

    plain, recorded = both(tmp_path, train)
    assert recorded == plain


class Strict(keras.Model):
    """Raises in a step whose batch holds NaN."""

    def train_step(self, data: Any) -> Any:
        tf.debugging.check_numerics(data[0], "bad batch")
        return super().train_step(data)


def test_an_error_of_the_step_is_raised_with_the_users_line(tmp_path: Path) -> None:
    spoilt = X.copy()
    spoilt[8 * BAD] = np.nan
    model = network(Strict)

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*tb_gradflow.*")
        with pytest.raises(tf.errors.InvalidArgumentError, match="bad batch") as raised:
            model.fit(spoilt, Y, batch_size=8, shuffle=False, verbose=0, callbacks=[guarded(tmp_path)])

    assert "test_guarded_fit.py" in str(raised.value)
    assert int(model.optimizer.iterations.numpy()) in (BAD, BAD + 1)


def test_a_watched_step_that_fails_is_not_run_a_second_time(tmp_path: Path) -> None:
    weight, calls = tf.Variable(1.0), tf.Variable(0)

    @tb_gradflow.watch(tmp_path, update_freq=10**6)
    @tf.function
    def step(x: Any) -> None:
        calls.assign_add(1)
        with tf.GradientTape() as tape:
            error = tf.square(weight * x)
        weight.assign_sub(0.01 * tape.gradient(error, weight))
        with tf.control_dependencies([calls]):
            tf.debugging.assert_less(x, 100.0)

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*tb_gradflow.*")
        for value in (1.0, 2.0, 1000.0, 3.0):
            if value > 100:
                with pytest.raises(tf.errors.InvalidArgumentError):
                    step(tf.constant(value))
            else:
                step(tf.constant(value))

    assert int(calls) == 4


@pytest.mark.parametrize("xla", [False, True], ids=["", "XLA"])
def test_data_of_unknown_length_end_as_they_do_without_the_recorder(xla: bool, tmp_path: Path) -> None:
    """Keras finds out by a step without a batch, which still counts and draws."""

    def batches() -> Iterator[Any]:
        for first in range(0, 16, 8):
            yield X[first : first + 8], Y[first : first + 8]

    signature = (tf.TensorSpec([None, 6]), tf.TensorSpec([None, 1]))

    def train(callbacks: list[Any]) -> Any:
        model = network(xla=xla)
        data = tf.data.Dataset.from_generator(batches, output_signature=signature)
        history = model.fit(data, epochs=3, verbose=0, callbacks=callbacks).history["loss"]
        return history, int(model.optimizer.iterations.numpy()), [weight.tolist() for weight in model.get_weights()]

    plain, recorded = both(tmp_path, train)
    assert recorded == plain


class OwnOptimizer(keras.Model):
    """Updates by an optimizer that Keras does not know of, twice a step."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(self(x) - y))
        gradients = tape.gradient(error, self.trainable_variables)
        for _ in range(2):
            self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": error, "pair": [error, 2 * error]}


def test_a_caught_step_has_its_number_whatever_the_optimizer_counts(tmp_path: Path) -> None:
    spoilt = Y.copy()
    spoilt[8 * BAD] = np.nan

    network(OwnOptimizer).fit(X, spoilt, batch_size=8, shuffle=False, verbose=0, callbacks=[guarded(tmp_path)])

    assert read(tmp_path).steps == (0, BAD)


def test_callbacks_are_told_of_results_as_without_the_recorder(tmp_path: Path) -> None:
    def train(callbacks: list[Any]) -> Any:
        told: list[Any] = []
        note = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: told.append(logs["pair"]))
        network(OwnOptimizer).fit(X, Y, batch_size=8, shuffle=False, verbose=0, callbacks=[*callbacks, note])
        return [(type(each), np.asarray(each).tolist()) for each in told]

    plain, recorded = both(tmp_path, train)
    assert recorded == plain


def test_a_training_function_of_the_users_own_is_what_runs(tmp_path: Path) -> None:
    def count(model: Any, place: str) -> list[int]:
        ran: list[int] = []
        make = model.make_train_function

        def counting(*args: Any, **kwargs: Any) -> None:
            make(*args, **kwargs)
            function = model.train_function

            def run(iterator: Any) -> Any:
                ran.append(1)
                return function(iterator)

            model.train_function = run

        if place == "made":
            model.make_train_function = counting
        else:
            counting()
        return ran

    for place in ("made", "set"):
        model = network()
        ran = count(model, place)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*tb_gradflow.*")
            model.fit(X, Y, batch_size=8, verbose=0, callbacks=[guarded(tmp_path / place)])
        assert len(ran) == 8
        assert read(tmp_path / place).steps == (0,)


def test_a_fit_that_was_interrupted_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if batch == BAD:
                raise KeyboardInterrupt

    for name in ("same", "other"):
        model = network()
        recorder = guarded(tmp_path / name)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y, batch_size=8, verbose=0, callbacks=[recorder, Interrupt()])
        if name == "other":
            recorder = guarded(tmp_path / "another")
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*tb_gradflow.*")
            model.fit(X, Y, batch_size=8, verbose=0, callbacks=[recorder])
        assert int(model.optimizer.iterations.numpy()) == BAD + 8


def test_a_model_that_is_compiled_anew_in_the_middle_trains_on(tmp_path: Path) -> None:
    class Anew(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 0:
                self.model.compile("sgd", "mae")
                self.model.make_train_function()

    def train(callbacks: list[Any]) -> Any:
        model = network()
        history = model.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0, callbacks=[*callbacks, Anew()])
        return history.history["loss"]

    plain, recorded = both(tmp_path, train)
    assert recorded == plain


def test_weights_that_become_nan_between_recorded_eager_steps_are_told(tmp_path: Path) -> None:
    """Nothing watches the gradients of eager steps: the step after is recorded."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, kernel_initializer="ones")])
    x, y = np.ones((200, 2), np.float32), np.ones((200, 1), np.float32)
    x[30] = np.nan
    model.compile("sgd", "mse", run_eagerly=True)

    model.fit(x, y, batch_size=1, shuffle=False, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    report = tb_gradflow.open_log(tmp_path).report()
    assert report.step > 30
    assert "nonfinite_weights" in {finding.cause for finding in report.findings}


def test_weights_that_become_nan_in_eager_steps_of_a_function_are_told(tmp_path: Path) -> None:
    weight = tf.Variable([1.0, 1.0], name="weight")

    @tb_gradflow.watch(tmp_path)
    def step(x: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight * x)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))

    tf.config.run_functions_eagerly(True)
    try:
        for number in range(200):
            step(tf.constant([1.0, math.nan if number == 30 else 1.0]))
    finally:
        tf.config.run_functions_eagerly(False)
    step.flush()

    report = tb_gradflow.open_log(tmp_path).report()
    assert report.step > 30
    assert {finding.cause for finding in report.findings} == {"nonfinite_weights"}
