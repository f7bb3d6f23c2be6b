"""Several fits of a model that is compiled once: Keras traces its step once, and so does the recorder."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tests.trace.recording import data, read

# The first ten steps are recorded, and the guard runs the others.
ROWS, BATCH = 96, 8


def two_fits(library: Any, frozen_first: bool, *recorder: GradFlowCallback) -> tuple[list[float], list[Any]]:
    """The first layer is frozen, or thawed, between them, and `compile` is not called again."""
    library.backend.clear_session()
    library.utils.set_random_seed(7)
    layers = library.layers
    model = library.Sequential([layers.Input((6,)), layers.Dense(5, "tanh", name="body"), layers.Dense(1, name="head")])
    model.get_layer("body").trainable = not frozen_first
    model.compile("adam", "mse")
    x, y = data(outputs=1, rows=ROWS)
    losses = []
    for trainable in (not frozen_first, frozen_first):
        model.get_layer("body").trainable = trainable
        history = model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0, shuffle=False, callbacks=list(recorder))
        losses += history.history["loss"]
    return losses, model.get_weights()


@pytest.mark.parametrize("library", [keras, tf_keras], ids=["keras", "tf_keras"])
@pytest.mark.parametrize("frozen_first", [True, False], ids=["thawed", "frozen"])
def test_what_is_frozen_or_thawed_without_compile_is_trained_as_without_the_recorder(
    library: Any, frozen_first: bool, tmp_path: Path
) -> None:
    losses, weights = two_fits(library, frozen_first)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        recorded_losses, recorded_weights = two_fits(library, frozen_first, GradFlowCallback(tmp_path, overhead=1.0))

    # Keras 2 puts the flags back itself while it trains.
    said = [str(each.message) for each in told if "has no effect" in str(each.message)]
    assert len(said) == (library is keras)
    became = "became trainable" if frozen_first else "became frozen"
    assert all("body/kernel` and 1 more" in each and became in each and "model.compile(...)" in each for each in said)
    assert recorded_losses == losses
    for one, other in zip(weights, recorded_weights, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("first", ["recorded by another", "not recorded"])
def test_a_fit_that_goes_on_with_what_was_compiled_under_other_flags_is_left_as_it_is(
    first: str, tmp_path: Path
) -> None:
    """It is recorded, by what was observed when it was compiled or by its graph."""

    def weights(before: list[GradFlowCallback], now: list[GradFlowCallback]) -> list[Any]:
        keras.utils.clear_session(free_memory=False)
        keras.utils.set_random_seed(7)
        body, head = keras.layers.Dense(5, "tanh", name="body"), keras.layers.Dense(1)
        model = keras.Sequential([keras.Input((6,)), body, keras.layers.BatchNormalization(), head])
        model.compile("sgd", "mse")
        x, y = data(outputs=1, rows=ROWS)
        model.fit(x, y, batch_size=BATCH, verbose=0, shuffle=False, callbacks=before)
        body.trainable = False
        model.fit(x, y, batch_size=BATCH, verbose=0, shuffle=False, callbacks=now)
        return list(model.get_weights())

    before = [GradFlowCallback(tmp_path / "before")] if first == "recorded by another" else []
    plain = weights([], [])

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        recorded = weights(before, [GradFlowCallback(tmp_path / "now")])

    said = " ".join(str(each.message) for each in told)
    assert "body/kernel` and 1 more became frozen after" in said
    assert "does not record" not in said
    assert read(tmp_path / "now").steps
    for one, other in zip(plain, recorded, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_fit_that_cannot_be_read_from_its_graph_is_recorded_after_compile(tmp_path: Path) -> None:
    keras.utils.clear_session(free_memory=False)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4, activation="silu"), keras.layers.Dense(1)])
    x, y = data(outputs=1, rows=16)
    model.compile("sgd", "mse")
    model.fit(x, y, batch_size=8, verbose=0)
    recorder = GradFlowCallback(tmp_path, update_freq=1)

    with pytest.warns(RuntimeWarning, match=r"cannot be read from its graph: .*custom gradient.*`model.compile"):
        model.fit(x, y, batch_size=8, verbose=0, callbacks=[recorder])
    model.compile("sgd", "mse")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(x, y, batch_size=8, verbose=0, callbacks=[recorder])

    assert read(tmp_path).steps == (4, 5)


class Unbuilt(keras.Model):
    """Has no weights before its first step."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = keras.layers.Dense(4, name="body"), keras.layers.Dense(1, name="head")

    def call(self, x: Any) -> Any:
        return self.head(self.body(x))


@pytest.mark.parametrize("same_recorder", [True, False], ids=["one recorder", "two recorders"])
def test_weights_that_the_fit_before_has_made_have_not_changed(same_recorder: bool, tmp_path: Path) -> None:
    keras.utils.clear_session(free_memory=False)
    model = Unbuilt()
    model.compile("sgd", "mse")
    x, y = data(outputs=1, rows=16)
    first = GradFlowCallback(tmp_path / "one", update_freq=1)
    second = first if same_recorder else GradFlowCallback(tmp_path / "two", update_freq=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for recorder in (first, second):
            model.fit(x, y, batch_size=8, verbose=0, callbacks=[recorder])

    steps = [each for name in ("one", "two")[: 2 - same_recorder] for each in read(tmp_path / name).steps]
    assert steps == [0, 1, 2, 3]

    model.body.trainable = False
    with pytest.warns(RuntimeWarning, match="body/kernel` and 1 more became frozen after"):
        model.fit(x, y, batch_size=8, verbose=0, callbacks=[second])


def test_a_fit_that_goes_on_is_recorded_with_the_functions_of_the_one_before(tmp_path: Path) -> None:
    keras.utils.clear_session(free_memory=False)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = data(outputs=1, rows=16)
    recorder = GradFlowCallback(tmp_path, update_freq=1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            model.fit(x, y, batch_size=8, verbose=0, callbacks=[recorder])
        model.compile("sgd", "mae")
        model.fit(x, y, batch_size=8, verbose=0, callbacks=[recorder])

    recorded = read(tmp_path)
    assert recorded.steps == tuple(range(8))
    assert len(recorded.traces) == 2


@pytest.mark.parametrize("library", [keras, tf_keras], ids=["keras", "tf_keras"])
def test_what_is_compiled_anew_is_recorded_from_its_first_step(library: Any, tmp_path: Path) -> None:
    """A second phase of a training is another step, even if the first phase has used up what recording may cost."""
    layers = library.layers
    model = library.Sequential([layers.Input((6,)), layers.Dense(5, "tanh", name="body"), layers.Dense(1, name="head")])
    model.get_layer("body").trainable = False
    recorder = GradFlowCallback(tmp_path, overhead=1e-6)
    x, y = data(outputs=1, rows=ROWS)
    for trainable in (False, True):
        model.get_layer("body").trainable = trainable
        model.compile("adam", "mse")
        model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0, callbacks=[recorder])

    log = tb_gradflow.open_log(tmp_path)

    assert {*range(10), 24, 25, 26} <= set(log.steps)
    for step, status in ((9, "frozen"), (24, "connected")):
        found = {name: each.status for name, each in log.report(step=step).variables.items() if "body/kernel" in name}
        assert list(found.values()) == [status]


def test_so_is_a_function_that_python_compiles_later_for_other_arguments(tmp_path: Path) -> None:
    first, second = tf.Variable(1.0, name="first"), tf.Variable(1.0, name="second")

    @tb_gradflow.watch(tmp_path, overhead=1e-6)
    @tf.function
    def step(x: tf.Tensor, warm: bool) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = (first * x - 1.0) ** 2 if warm else (first * tf.round(second * x) - 1.0) ** 2
        return tape.gradient(loss, [first, second])

    for number in range(40):
        step(tf.constant(0.5), number < 30)
    step.flush()

    log = tb_gradflow.open_log(tmp_path)
    assert {*range(10), 30, 31, 32} <= set(log.steps)
    assert {finding.cause for finding in log.report().findings if finding.severity == "error"} == {"nondiff_rounding"}


def test_only_a_few_of_many_functions_are_recorded(tmp_path: Path) -> None:
    """Batches of many lengths."""
    weight = tf.Variable(1.0, name="weight")

    @tb_gradflow.watch(tmp_path, overhead=1e-6)
    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight * x)
        return tape.gradient(loss, weight)

    for number in range(60):
        step(tf.ones(1 + number // 15))
    for number in range(10):
        step(tf.ones(10 + number))
    step.flush()

    steps = set(tb_gradflow.open_log(tmp_path).steps)
    assert {15, 16, 17, 30, 31, 32, 45, 46, 47, 60} <= steps
    assert len(steps & set(range(61, 70))) <= 1
