"""Random numbers of TensorFlow's ops with a state: those of a training without the recorder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.errors import LogError
from tests.trace.recording import read

SETTINGS: dict[str, Any] = {
    "each step": {"update_freq": 1},
    "guarded": {"update_freq": 1000},
    "in turns": {"update_freq": 3},
}


def noise_of_all_kinds(x: Any) -> Any:
    shape = tf.shape(x)
    kept = tf.random.uniform(shape, 0, 5, dtype=tf.int32, seed=3) > 0
    noise = tf.random.normal(shape, stddev=0.1) + tf.random.truncated_normal(shape, stddev=0.1)
    return tf.nn.dropout(tf.where(kept, x, 0.0) + noise, 0.3)


def noise_in_a_loop(x: Any) -> Any:
    def more(index: Any, value: Any) -> Any:
        return index + 1, tf.tanh(value) + 0.1 * tf.random.normal(tf.shape(value))

    return tf.while_loop(lambda index, _: index < 3, more, [0, x])[1]


def noise_now_and_then(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x + tf.random.normal(tf.shape(x)), lambda: 2.0 * x)


def noise_row_by_row(x: Any) -> Any:
    return tf.vectorized_map(lambda row: row + tf.random.normal([6]), x)


NOISE = [noise_of_all_kinds, noise_row_by_row]


def network(noise: Callable[[Any], Any]) -> Any:
    keras.utils.set_random_seed(7)
    noisy = keras.layers.Lambda(noise, output_shape=lambda shape: shape)
    return keras.Sequential([keras.Input((6,)), noisy, keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)])


def data(rows: int) -> tuple[Any, Any]:
    numbers = np.random.default_rng(0)
    return numbers.normal(size=(rows, 6)).astype("float32"), numbers.normal(size=(rows, 1)).astype("float32")


def fitted(noise: Callable[[Any], Any], *callbacks: Any) -> list[Any]:
    model = network(noise)
    model.compile("adam", "mse")
    # The last batch of an epoch is smaller.
    history = model.fit(*data(44), batch_size=8, epochs=3, verbose=0, callbacks=list(callbacks))
    return [*model.get_weights(), history.history["loss"]]


def fitted_twice(callback: Callable[[str], list[Any]]) -> list[Any]:
    model = network(noise_of_all_kinds)
    model.compile("adam", "mse")
    for name in ("first", "second"):
        model.fit(*data(44), batch_size=8, epochs=2, verbose=0, callbacks=callback(name))
    return list(model.get_weights())


def looped(noise: Callable[[Any], Any], watched: Callable[[Any], Any]) -> list[Any]:
    model, optimizer = network(noise), keras.optimizers.SGD(0.05)

    @watched
    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    x, y = data(44)
    losses = [float(step(x[at : at + 8], y[at : at + 8])) for _ in range(3) for at in range(0, 44, 8)]
    return [*model.get_weights(), losses]


def assert_same(one: list[Any], other: list[Any]) -> None:
    for ours, plain in zip(one, other, strict=True):
        np.testing.assert_array_equal(ours, plain)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("noise", NOISE)
def test_a_fit_draws_the_same_numbers(tmp_path: Path, noise: Callable[[Any], Any], setting: str) -> None:
    recorder = tb_gradflow.GradFlowCallback(tmp_path, **SETTINGS[setting])

    assert_same(fitted(noise, recorder), fitted(noise))

    assert read(tmp_path).trace.notes == ()


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("noise", NOISE)
def test_a_loop_draws_the_same_numbers(tmp_path: Path, noise: Callable[[Any], Any], setting: str) -> None:
    watched = tb_gradflow.watch(tmp_path, **SETTINGS[setting])

    assert_same(looped(noise, watched), looped(noise, lambda step: step))

    trace = read(tmp_path).trace
    assert trace.notes == ()
    assert [variable.shape for variable in trace.variables] == [(6, 4), (4,), (4, 1), (1,)]


def test_a_fit_goes_on_where_the_one_before_has_ended(tmp_path: Path) -> None:
    recorded = fitted_twice(lambda name: [tb_gradflow.GradFlowCallback(tmp_path / name)])

    assert_same(recorded, fitted_twice(lambda _: []))


def test_a_fit_after_one_without_the_recorder_is_told_of(tmp_path: Path) -> None:
    """Keras goes on with the step that it has compiled then, and nobody has seen."""
    with pytest.warns(RuntimeWarning, match="does not record this fit") as told:
        recorded = fitted_twice(lambda name: [tb_gradflow.GradFlowCallback(tmp_path)] if name == "second" else [])

    assert len([each for each in told if each.category is RuntimeWarning]) == 1
    assert_same(recorded, fitted_twice(lambda _: []))
    with pytest.raises(LogError):
        tb_gradflow.open_log(tmp_path)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_variable_that_the_first_step_makes_begins_as_it_would(tmp_path: Path, setting: str) -> None:
    def trained(*callbacks: Any) -> Any:
        model = WithLateWeight()
        model.compile()
        history = model.fit(*data(64), batch_size=4, verbose=0, callbacks=list(callbacks))
        return [model.weight.numpy(), history.history["loss"]]

    recorder = tb_gradflow.GradFlowCallback(tmp_path, **SETTINGS[setting])
    keras.utils.set_random_seed(5)
    recorded = trained(recorder)
    keras.utils.set_random_seed(5)

    assert_same(recorded, trained())


class WithLateWeight(keras.Model):
    """A step that makes a variable when it is first traced, from random numbers."""

    weight: Any = None

    def train_step(self, data: Any) -> Any:
        x, y = data
        if self.weight is None:
            self.weight = tf.Variable(tf.random.normal([6, 1]))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ self.weight + 0.1 * tf.random.normal(tf.shape(y)) - y) ** 2)
        self.weight.assign_sub(0.1 * tape.gradient(loss, self.weight))
        return {"loss": loss}


def test_numbers_that_are_a_result_are_those_that_were_used(tmp_path: Path) -> None:
    weight = tf.Variable(1.0)

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def step() -> Any:
        noise = tf.random.normal([])
        with tf.GradientTape() as tape:
            loss = weight * noise
        tape.gradient(loss, weight)
        return noise, loss

    keras.utils.set_random_seed(5)
    for noise, loss in [step() for _ in range(20)]:
        assert float(noise) == float(loss)


def test_a_function_that_is_called_twice_draws_what_it_would(tmp_path: Path) -> None:
    @tf.function
    def drawn(shape: Any) -> Any:
        return tf.random.normal(shape)

    def noise(x: Any) -> Any:
        return x + drawn(tf.shape(x)) + drawn(tf.shape(x))

    recorder = tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)

    assert_same(fitted(noise, recorder), fitted(noise))


def noise_of_a_function(x: Any) -> Any:
    return x + tf.function(lambda shape: tf.random.normal(shape))(tf.shape(x))


def noise_of_other_kinds(x: Any) -> Any:
    return x + tf.random.gamma(tf.shape(x), 1.0)


def noise_of_a_sampler(x: Any) -> Any:
    """As of `tf.nn.sampled_softmax_loss`."""
    sampled, _, _ = tf.random.log_uniform_candidate_sampler(tf.constant([[1]], tf.int64), 1, 2, True, 50)
    return x + 0.01 * tf.cast(sampled[0], tf.float32)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("noise", [noise_of_a_function, noise_in_a_loop, noise_now_and_then])
def test_functions_loops_and_branches_draw_what_they_would(
    tmp_path: Path, noise: Callable[[Any], Any], setting: str
) -> None:
    assert_same(fitted(noise, tb_gradflow.GradFlowCallback(tmp_path, **SETTINGS[setting])), fitted(noise))

    assert read(tmp_path).trace.notes == ()


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("noise", [noise_of_other_kinds, noise_of_a_sampler])
def test_ops_without_a_stateless_form_draw_in_one_function(
    tmp_path: Path, noise: Callable[[Any], Any], setting: str
) -> None:
    assert_same(fitted(noise, tb_gradflow.GradFlowCallback(tmp_path, **SETTINGS[setting])), fitted(noise))

    [note] = read(tmp_path).trace.notes
    assert "every step runs in its recorded form" in note


def test_numbers_that_nobody_can_expect_are_not_told_of(tmp_path: Path) -> None:
    tf.random.set_seed(None)
    step = tb_gradflow.watch(tmp_path, catch_nonfinite=False)(noisy_step(tf.Variable(1.0)))

    step(tf.ones([3]))
    step.flush()

    assert read(tmp_path).trace.notes == ()


def noisy_step(weight: Any) -> Any:
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(x * weight + tf.random.normal([3]))
        weight.assign_sub(0.01 * tape.gradient(loss, weight))
        return loss

    return step


def test_a_noisy_step_with_nan_is_caught_with_its_own_noise(tmp_path: Path) -> None:
    """The root of what was drawn below the weight is NaN in few steps, and only with their numbers."""
    keras.utils.set_random_seed(3)
    weight = tf.Variable(1.9, name="weight")

    @tb_gradflow.watch(tmp_path, update_freq=1000)
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.sqrt(weight + tf.random.normal([]))
        weight.assign_add(0.0 * tape.gradient(loss, weight))
        return loss

    losses = [float(step()) for _ in range(200)]
    step.flush()

    first = next(number for number, loss in enumerate(losses) if np.isnan(loss))
    assert first > 1
    assert read(tmp_path).steps[-1] == first
    report = tb_gradflow.open_log(tmp_path).report(step=first)
    assert report.findings[0].op is not None
    assert report.findings[0].op.type == "Sqrt"


@pytest.mark.parametrize("setting", SETTINGS)
def test_each_model_that_a_step_is_given_has_draws_of_its_own(tmp_path: Path, setting: str) -> None:
    def drawn(wrap: Callable[[Any], Any]) -> list[float]:
        keras.utils.set_random_seed(7)
        models = [keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]) for _ in range(2)]

        def step(x: Any, model: Any) -> Any:
            noise = tf.random.normal([3, 2])
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x + noise)))
            for variable, gradient in zip(model.variables, tape.gradient(loss, model.variables), strict=True):
                variable.assign_sub(0.1 * gradient)
            return tf.reduce_sum(noise)

        wrapped = wrap(step)
        return [float(wrapped(tf.ones([3, 2]), models[number % 2])) for number in range(8)]

    assert drawn(tb_gradflow.watch(str(tmp_path), **SETTINGS[setting])) == drawn(tf.function)


def resized(watched: Callable[[Any], Any]) -> list[Any]:
    """A loop whose step is compiled for the first size and then for all others, whichever they are."""
    model, optimizer = network(noise_of_all_kinds), keras.optimizers.SGD(0.05)

    @watched
    @tf.function(reduce_retracing=True)
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    x, y = data(8)
    for rows in (8, 8, 8, 6, 8, 6):
        step(tf.constant(x[:rows]), tf.constant(y[:rows]))
    return list(model.get_weights())


def test_a_step_that_is_compiled_for_any_size_draws_what_it_would(tmp_path: Path) -> None:
    assert_same(resized(tb_gradflow.watch(tmp_path, update_freq=4)), resized(lambda step: step))


def test_fits_on_batches_of_different_sizes_draw_what_they_would(tmp_path: Path) -> None:
    def trained(*callbacks: Any) -> list[Any]:
        model = network(noise_of_all_kinds)
        model.compile("adam", "mse")
        for rows in (8, 8, 4):
            batches = tf.data.Dataset.from_tensor_slices(data(32)).batch(rows, drop_remainder=True)
            model.fit(batches, verbose=0, callbacks=list(callbacks))
        return list(model.get_weights())

    assert_same(trained(tb_gradflow.GradFlowCallback(str(tmp_path), update_freq=2)), trained())


def test_a_fit_without_the_recorder_goes_on_where_one_with_it_has_ended(tmp_path: Path) -> None:
    assert_same(
        fitted_twice(lambda name: [tb_gradflow.GradFlowCallback(tmp_path)] if name == "first" else []),
        fitted_twice(lambda name: []),
    )


class Noisy(keras.Model):
    """Adds noise in a step of its own, which makes the optimizer's variables when it is first traced."""

    def __init__(self) -> None:
        super().__init__()
        self.line = keras.layers.Dense(1)
        self.line.build((None, 6))

    def call(self, x: Any) -> Any:
        return self.line(x)

    def train_step(self, batch: Any) -> Any:
        x, y = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x) + 0.1 * tf.random.normal(tf.shape(y)) - y))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def test_a_trace_that_never_runs_tells_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keras.utils.set_random_seed(1)
    model = Noisy()
    model.compile("adam")

    model.fit(*data(32), batch_size=8, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(str(tmp_path))])

    assert "draws seeded" not in caplog.text


def test_a_second_recorder_leaves_a_generator_that_belongs_to_the_first(tmp_path: Path) -> None:
    def trained(*recorders: Any) -> list[Any]:
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1)])
        model.compile("sgd", lambda y, out: tf.reduce_mean((out - y * tf.random.gamma((), 2.0, seed=4)) ** 2))
        for recorder in recorders:
            model.fit(*data(32), batch_size=8, verbose=0, callbacks=[recorder] if recorder else [])
        return list(model.get_weights())

    with pytest.warns(RuntimeWarning, match="an earlier recorder has recorded it"):
        recorded = trained(*(tb_gradflow.GradFlowCallback(str(tmp_path / each)) for each in "ab"))

    assert_same(recorded, trained(None, None))
