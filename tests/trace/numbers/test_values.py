"""The recorded numbers against an independent eager tape."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.trace.recording import data, expected_gradients, record

layers = keras.layers


def straight() -> Any:
    x = keras.Input((6,))
    model = keras.Model(x, layers.Dense(2, name="b")(layers.Dense(8, "tanh", name="a")(x)))
    model.compile("sgd", "mse")
    return model


def branching() -> Any:
    x = keras.Input((6,))
    left = layers.Dense(5, "sigmoid", name="left")(x)
    right = layers.Dense(5, "relu", name="right")(x)
    model = keras.Model(x, layers.Dense(2, name="out")(layers.concatenate([left + right, left * right])))
    model.compile("sgd", "mse")
    return model


def shared() -> Any:
    x = keras.Input((6,))
    twice = layers.Dense(6, "tanh", name="twice")
    model = keras.Model(x, layers.Dense(2, name="out")(twice(twice(x))))
    model.compile("sgd", "mse")
    return model


def recurrent() -> Any:
    x = keras.Input((6,))
    steps = layers.Reshape((3, 2))(x)
    model = keras.Model(x, layers.Dense(2, name="out")(layers.LSTM(4, name="lstm")(steps)))
    model.compile("sgd", "mse")
    return model


def convolutional() -> Any:
    x = keras.Input((6,))
    image = layers.Reshape((3, 2, 1))(x)
    image = layers.ReLU(name="relu")(
        layers.BatchNormalization(name="bn")(layers.Conv2D(4, 2, padding="same", name="conv")(image))
    )
    model = keras.Model(x, layers.Dense(2, name="out")(layers.Flatten(name="flat")(image)))
    model.compile("sgd", "mse")
    return model


@pytest.mark.parametrize("build", [straight, branching, shared, recurrent, convolutional])
def test_every_variables_gradient_is_the_tapes(build: Callable[[], Any], tmp_path: Path) -> None:
    x, y = data()

    recorded = record(tmp_path, build, x, y, epochs=1, shuffle=False)

    keras.utils.set_random_seed(7)
    model = build()
    expected = expected_gradients(model, x, y, keras.losses.MeanSquaredError())
    assert expected
    for name, gradient in expected.items():
        dense = tf.convert_to_tensor(gradient).numpy()
        assert recorded.gradient(name, "norm") == pytest.approx(np.linalg.norm(dense.ravel()), rel=1e-4, abs=1e-7)
        assert recorded.gradient(name, "max_abs") == pytest.approx(np.abs(dense).max(), rel=1e-4, abs=1e-7)
        assert recorded.gradient(name, "mean_abs") == pytest.approx(np.abs(dense).mean(), rel=1e-4, abs=1e-7)
        assert recorded.gradient(name, "zero_fraction") == pytest.approx((dense == 0).mean(), abs=1e-6)


def test_a_tensors_gradient_is_the_tapes(tmp_path: Path) -> None:
    x, y = data()

    recorded = record(tmp_path, straight, x, y, epochs=1)

    keras.utils.set_random_seed(7)
    model = straight()
    with tf.GradientTape() as tape:
        hidden = model.get_layer("a")(x)
        output = model.get_layer("b")(hidden)
        loss = tf.reduce_mean(tf.square(output - y))
    at_hidden, at_output = tape.gradient(loss, [hidden, output])
    assert recorded.tensor(recorded.op("Tanh")) == pytest.approx(np.linalg.norm(at_hidden), rel=1e-5)
    # Keras adds the bias with one op or with the other, as its version does.
    [result] = [op for op in recorded.trace.ops if op.type in ("BiasAdd", "AddV2") and "/b" in op.name]
    assert recorded.tensor(result) == pytest.approx(np.linalg.norm(at_output), rel=1e-5)


def test_weight_and_update_norms_are_what_the_optimizer_did(tmp_path: Path) -> None:
    x, y = data()
    rate = 0.01  # Keras's default for SGD

    recorded = record(tmp_path, straight, x, y, epochs=1)

    keras.utils.set_random_seed(7)
    model = straight()
    expected = expected_gradients(model, x, y, keras.losses.MeanSquaredError())
    for variable in model.trainable_variables:
        update = rate * expected[variable.path].numpy()
        after = variable.numpy() - update
        assert recorded.norm(variable.path, "update_norm") == pytest.approx(np.linalg.norm(update), rel=1e-4)
        assert recorded.norm(variable.path, "weight_norm") == pytest.approx(np.linalg.norm(after), rel=1e-5)


def test_embedding_gradients_count_as_the_dense_tensor(tmp_path: Path) -> None:
    def build() -> Any:
        tokens = keras.Input((4,), dtype="int32")
        embedded = layers.Embedding(10, 3, name="table")(tokens)
        model = keras.Model(tokens, layers.Dense(2)(layers.Flatten()(embedded)))
        model.compile("sgd", "mse")
        return model

    tokens = np.tile(np.array([[1, 2, 2, 7]], "int32"), (16, 1))
    _, y = data()

    recorded = record(tmp_path, build, tokens, y)

    keras.utils.set_random_seed(7)
    expected = expected_gradients(build(), tokens, y, keras.losses.MeanSquaredError())["table/embeddings"]
    dense = tf.convert_to_tensor(expected).numpy()
    assert recorded.gradient("table/embeddings") == pytest.approx(np.linalg.norm(dense.ravel()), rel=1e-5)
    assert recorded.gradient("table/embeddings", "zero_fraction") == pytest.approx(0.7)


def test_loss_is_the_value_that_was_differentiated(tmp_path: Path) -> None:
    x, y = data()

    recorded = record(tmp_path, straight, x, y)

    keras.utils.set_random_seed(7)
    assert recorded.losses[0][0] == pytest.approx(float(np.mean((straight()(x) - y) ** 2)), rel=1e-5)


def test_loss_scaling_is_taken_out(tmp_path: Path) -> None:
    """Half precision trains on a loss that is multiplied with 32768; what is recorded is the gradient itself."""
    x, y = data()

    def half() -> Any:
        keras.mixed_precision.set_global_policy("mixed_float16")
        try:
            model = straight()
        finally:
            keras.mixed_precision.set_global_policy("float32")
        model.compile("sgd", "mse")
        return model

    scaled = record(tmp_path / "half", half, x, y)
    plain = record(tmp_path / "single", straight, x, y)

    for name in ("a/kernel", "a/bias", "b/kernel", "b/bias"):
        assert scaled.gradient(name) == pytest.approx(plain.gradient(name), rel=0.02)
    assert scaled.losses[0][0] == pytest.approx(plain.losses[0][0], rel=0.02)


def test_every_tensors_gradient_is_the_tapes(tmp_path: Path) -> None:
    """Some measured and some known from others, against a tape that is asked for each. Those that TensorFlow merges
    with their neighbours are left out."""
    x, y = data()

    recorded = record(tmp_path, convolutional, x, y, epochs=1, shuffle=False)

    measured = {
        recorded.trace.ops[g.op].name: recorded.gradients[0][g.row]
        for g in recorded.trace.tensor_gradients
        if g.row is not None
    }
    expected = _norms_of_all_tensors(convolutional, x, y)
    truth = {name.partition("/")[2]: norm for name, norm in expected.items()}
    assert len(measured) > 15
    # Keras before 3.16 numbers the scopes of layers.
    of_layers = {name.partition("/")[2].replace("_1/", "/") for name in measured}
    assert of_layers >= {"conv/convolution", "relu/Relu", "flat/Reshape", "out/MatMul"}
    for name, row in measured.items():
        assert row[0] == pytest.approx(truth[name.partition("/")[2]], rel=1e-4, abs=1e-6), name


def _norms_of_all_tensors(build: Callable[[], Any], x: Any, y: Any) -> dict[str, float]:
    """The norm of the gradient at each tensor of the traced loss that has one."""
    keras.utils.set_random_seed(7)
    model = build()
    names: list[str] = []

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x, y, model(x, training=True))
        tensors = [t for op in tf.compat.v1.get_default_graph().get_operations() for t in op.outputs]
        floats = [t for t in tensors if t.dtype == tf.float32 and t.op.type not in ("Const", "Placeholder")]
        gradients = tape.gradient(loss, floats)
        names.extend(t.op.name for t, g in zip(floats, gradients, strict=True) if g is not None)
        return [tf.norm(g) for g in gradients if g is not None]

    return dict(zip(names, (float(norm) for norm in step(x, y)), strict=True))


class Scaled(keras.layers.Layer):
    """Constant factors in a row, whose gradients TensorFlow merges into one where nobody looks between them."""

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(name="scale", shape=(6,), initializer="ones")

    def call(self, x: Any) -> Any:
        once = self.scale * x
        twice = once * 0.5
        return twice / 3.0


def test_gradients_that_tensorflow_merges_are_computed_once_more_and_recorded(tmp_path: Path) -> None:
    def build() -> Any:
        model = keras.Sequential([keras.Input((6,)), Scaled(name="scaled"), layers.Dense(2, name="out")])
        model.compile("sgd", "mse")
        return model

    x, y = data(rows=16)

    recorded = record(tmp_path, build, x, y, epochs=1, shuffle=False)

    keras.utils.set_random_seed(7)
    model = build()
    with tf.GradientTape() as tape:
        once = model.layers[0].scale * x
        tape.watch(once)
        twice = once * 0.5
        tape.watch(twice)
        loss = tf.reduce_mean(tf.square(model.layers[1](twice / 3.0) - y))
    by_once, by_twice = (np.linalg.norm(gradient) for gradient in tape.gradient(loss, [once, twice]))
    first, second = recorded.ops("Mul", "scaled")
    assert recorded.tensor(first) == pytest.approx(by_once, rel=1e-5)
    assert recorded.tensor(second) == pytest.approx(by_twice, rel=1e-5)
