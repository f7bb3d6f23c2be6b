"""The callback with models of Keras 2, and what is told where it cannot record."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.trace.tf_internals.versions import require
from tests.trace.recording import Recorded, data, read

layers = tf_keras.layers

TEXTS = np.array(["a b c", "b c d", "c c", "d a b e"] * 3)


def sequential(**options: Any) -> Any:
    model = tf_keras.Sequential(
        [
            tf_keras.Input((6,)),
            layers.Dense(8, "tanh", name="hidden"),
            layers.BatchNormalization(name="bn"),
            layers.Dense(2, name="out"),
        ]
    )
    model.compile(options.pop("optimizer", "adam"), "mse", **options)
    return model


def half() -> Any:
    tf_keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        return sequential()
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")


def built_by_its_first_step(**options: Any) -> Any:
    """No input shape is given: asked for its weights before that step, it raises."""
    model = tf_keras.Sequential([layers.Dense(8, "tanh", name="hidden"), layers.Dense(2, name="out")])
    model.compile("adam", "mse", **options)
    return model


class Autoencoder(tf_keras.Model):
    """Its parts are built by its first step: asked for its weights before, they raise."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = tf_keras.Sequential([layers.Dense(3, "relu", name="encoded")])
        self.decoder = tf_keras.Sequential([layers.Dense(2, name="decoded")])

    def call(self, x: Any) -> Any:
        return self.decoder(self.encoder(x))


def of_unbuilt_parts(**options: Any) -> Any:
    model = Autoencoder()
    model.compile("adam", "mse", **options)
    return model


class OwnStep(tf_keras.Model):
    """Not built before its first step."""

    def __init__(self) -> None:
        super().__init__()
        self.first = layers.Dense(8, name="first")
        self.second = layers.Dense(2, name="second")

    def call(self, x: Any) -> Any:
        return self.second(tf.nn.relu(self.first(x)))

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(self(x) - y))
        gradients = tape.gradient(error, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": error}


class Branching(tf_keras.layers.Layer):
    """Has an `if` on a tensor: Keras 2 has AutoGraph convert what its layers do."""

    def call(self, x: Any) -> Any:
        if tf.reduce_max(x) < -100.0:
            x = -x
        return x


def branching() -> Any:
    model = tf_keras.Sequential([tf_keras.Input((6,)), layers.Dense(4, name="hidden"), Branching(), layers.Dense(2)])
    model.compile("adam", "mse")
    return model


def own_step(**options: Any) -> Any:
    model = OwnStep()
    model.compile("adam", **options)
    return model


def trained(build: Callable[[], Any], *callbacks: Any) -> tuple[list[float], list[Any]]:
    tf_keras.backend.clear_session()
    tf_keras.utils.set_random_seed(7)
    model = build()
    x, y = data(rows=40)
    history = model.fit(x, y, batch_size=16, epochs=2, verbose=0, callbacks=list(callbacks))
    return history.history["loss"], [weight.numpy() for weight in model.weights]


BUILDERS: dict[str, Callable[[], Any]] = {
    "plain": sequential,
    "eager": lambda: sequential(run_eagerly=True),
    "several steps an execution": lambda: sequential(steps_per_execution=2),
    "xla": lambda: sequential(jit_compile=True),
    "half precision": half,
    "legacy optimizer": lambda: sequential(optimizer=tf_keras.optimizers.legacy.Adam()),
    "built by its first step": built_by_its_first_step,
    "built by its first step, eager": lambda: built_by_its_first_step(run_eagerly=True),
    "of parts that are built by its first step": of_unbuilt_parts,
    "of parts that are built by its first step, eager": lambda: of_unbuilt_parts(run_eagerly=True),
    "own step": own_step,
    "built by its first step, several steps an execution": lambda: built_by_its_first_step(steps_per_execution=2),
    "own step, several steps an execution": lambda: own_step(steps_per_execution=2),
    "an if in a layer": branching,
    "own step, eager": lambda: own_step(run_eagerly=True),
}


@pytest.mark.parametrize("kind", BUILDERS)
def test_a_model_of_keras_2_trains_as_without_the_recorder(kind: str, tmp_path: Path) -> None:
    losses, weights = trained(BUILDERS[kind])

    recorded_losses, recorded_weights = trained(BUILDERS[kind], GradFlowCallback(tmp_path, update_freq=2))

    # Under XLA another fusion may round otherwise.
    assert recorded_losses == (pytest.approx(losses, rel=1e-5) if kind == "xla" else losses)
    for one, other in zip(weights, recorded_weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4 if kind == "xla" else 0)
    recorded = read(tmp_path)
    assert recorded.steps == ((1, 2, 4, 5) if "several" in kind else (0, 2, 4))
    statuses = {each.status for each in tb_gradflow.open_log(tmp_path).report().variables.values()}
    assert statuses <= {"connected", "frozen"}
    assert recorded.trace.targets[0].scaled == (kind == "half precision")


@pytest.mark.parametrize("build", [sequential, half])
def test_the_numbers_are_the_tapes(build: Callable[[], Any], tmp_path: Path) -> None:
    x, y = data()

    tf_keras.utils.set_random_seed(7)
    model = build()
    model.fit(x, y, batch_size=16, shuffle=False, verbose=0, callbacks=[GradFlowCallback(tmp_path, update_freq=1)])

    tf_keras.utils.set_random_seed(7)
    model = build()
    with tf.GradientTape() as tape:
        value = tf.reduce_mean(tf.square(tf.cast(model(x, training=True), tf.float32) - y))
    recorded: Recorded = read(tmp_path)
    for variable, gradient in zip(
        model.trainable_variables, tape.gradient(value, model.trainable_variables), strict=True
    ):
        norm = recorded.gradient(variable.name.removesuffix(":0"))
        assert norm == pytest.approx(np.linalg.norm(gradient.numpy()), rel=2e-2 if build is half else 1e-4)
    assert [layer.name for layer in recorded.trace.layers] == ["hidden", "bn", "out"]


def with_words(built: bool) -> Any:
    """Text goes in; the words that the model knows stand in a table, which Keras 2 lists among its variables."""
    words = layers.TextVectorization(max_tokens=20, output_sequence_length=4)
    words.adapt(TEXTS)
    pooled = layers.GlobalAveragePooling1D()
    inner = tf_keras.Sequential([layers.Embedding(20, 4, name="words"), pooled, layers.Dense(1, name="out")])
    model = tf_keras.Sequential([*([tf_keras.Input((), dtype=tf.string)] if built else []), words, inner])
    model.compile("adam", "mse")
    return model


@pytest.mark.parametrize("built", [True, False])
def test_a_model_that_takes_text_is_recorded(built: bool, tmp_path: Path) -> None:
    y = np.linspace(0.0, 1.0, len(TEXTS), dtype="float32")[:, np.newaxis]

    def fit(*callbacks: Any) -> Any:
        tf_keras.backend.clear_session()
        tf_keras.utils.set_random_seed(7)
        model = with_words(built)
        history = model.fit(TEXTS, y, batch_size=4, epochs=2, verbose=0, shuffle=False, callbacks=list(callbacks))
        return history.history["loss"], [weight.numpy() for weight in model.trainable_weights]

    losses, weights = fit()
    recorded_losses, recorded_weights = fit(GradFlowCallback(tmp_path, update_freq=1))

    assert recorded_losses == losses
    for one, other in zip(weights, recorded_weights, strict=True):
        np.testing.assert_array_equal(one, other)
    recorded = read(tmp_path)
    assert recorded.steps == tuple(range(6))
    tf_keras.utils.set_random_seed(7)
    model = with_words(built)
    with tf.GradientTape() as tape:
        value = tf.reduce_mean(tf.square(model(TEXTS[:4]) - y[:4]))
    for variable, gradient in zip(
        model.trainable_variables, tape.gradient(value, model.trainable_variables), strict=True
    ):
        norm = np.linalg.norm(tf.convert_to_tensor(gradient).numpy())
        assert recorded.gradient(variable.name.removesuffix(":0")) == pytest.approx(norm, rel=1e-4)


def test_what_is_disconnected_is_found(tmp_path: Path) -> None:
    class Rounded(tf_keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.scale = self.add_weight(name="scale", shape=(), initializer="ones")

        def call(self, x: Any) -> Any:
            return x * tf.round(self.scale)

    model = tf_keras.Sequential([tf_keras.Input((6,)), layers.Dense(2), Rounded(name="rounded")])
    model.compile("sgd", "mse")

    model.fit(*data(), verbose=0, callbacks=[GradFlowCallback(tmp_path, update_freq=1)])

    report = tb_gradflow.open_log(tmp_path).report()
    assert report.variables["rounded/scale"].status == "disconnected"
    assert report.findings[0].cause == "nondiff_rounding"


@pytest.mark.parametrize("first", ["import tf_keras, tb_gradflow", "import tb_gradflow, keras, tf_keras"])
def test_keras_2_may_be_imported_before_and_after_and_as_tf_keras(first: str, tmp_path: Path) -> None:
    """Also as `tf.keras`, and where Keras 3 has another backend."""
    program = f"""
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
{first}
import numpy, tensorflow as tf
callback = tb_gradflow.GradFlowCallback({str(tmp_path)!r}, update_freq=1)
model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(numpy.ones((4, 3)), numpy.ones(4), verbose=0, callbacks=[callback])
assert tb_gradflow.open_log({str(tmp_path)!r}).report().healthy
"""
    run = subprocess.run([sys.executable, "-c", program], env=dict(os.environ), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("version", ["2.16.1", "2.21.0", "2.22.0-dev20261101", "3.0.0"])
def test_a_tensorflow_that_is_new_enough_is_accepted(version: str) -> None:
    require(version)


@pytest.mark.parametrize("version", ["2.15.1", "1.15.5"])
def test_an_older_tensorflow_is_refused_with_what_to_install(version: str) -> None:
    with pytest.raises(ImportError, match=rf"TensorFlow 2.16 or newer, and {version} is installed.*pip install"):
        require(version)


@pytest.mark.parametrize("build", [sequential, own_step])
def test_keras_writes_its_graph_beside_the_recorder(build: Callable[[], Any], tmp_path: Path) -> None:
    """After the first step Keras's TensorBoard callback takes the graph of the model's own function, and raises where
    that has never run: as in a fit whose first step was recorded."""
    plain = trained(build, tf_keras.callbacks.TensorBoard(tmp_path / "plain"))

    recorder = GradFlowCallback(tmp_path / "run", update_freq=2)
    recorded = trained(build, tf_keras.callbacks.TensorBoard(tmp_path / "run"), recorder)

    assert recorded[0] == plain[0]
    for one, other in zip(plain[1], recorded[1], strict=True):
        np.testing.assert_array_equal(one, other)
    assert read(tmp_path / "run").steps[0] == 0


def test_loading_the_recorder_draws_no_numbers() -> None:
    """Keras 3 is loaded with it, and what that loads draws some."""
    program = (
        "import random, tf_keras, tb_gradflow; random.seed(7); before = random.getstate(); "
        "tb_gradflow.GradFlowCallback; print(before == random.getstate())"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split()[-1] == "True"


@pytest.mark.parametrize(
    ("units", "loss", "y", "cause"),
    [
        (1, "mse", np.arange(24.0), "targets_out_of_reach"),
        (2, "mse", np.arange(24) % 2, "labels_broadcast"),
        (2, "mse", np.eye(2)[np.arange(24) % 2], None),
    ],
)
def test_targets_that_the_step_takes_from_its_iterator_are_measured(
    tmp_path: Path, units: int, loss: str, y: Any, cause: str | None
) -> None:
    model = tf_keras.Sequential([tf_keras.Input((6,)), layers.Dense(units, "sigmoid")])
    model.compile("sgd", loss)

    x = np.random.default_rng(0).normal(size=(24, 6))
    model.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=[GradFlowCallback(tmp_path)])

    said = tb_gradflow.open_log(tmp_path).report().findings
    assert [each.cause for each in said if each.severity != "info"] == ([cause] if cause else [])
