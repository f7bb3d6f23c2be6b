"""Small trainings as public examples write them, in which nothing is wrong: nothing is said above information."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

import tb_gradflow

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(256, 8)).astype("float32")
SCORES = ROWS @ RANDOM.normal(size=(8, 4)).astype("float32")
CLASSES = SCORES[:, :3].argmax(1)
ONE_HOT = np.eye(3, dtype="float32")[CLASSES]
IS_TWO = (CLASSES == 2).astype("float32")
PRICES = 20 + 5 * SCORES[:, 0] + RANDOM.normal(size=256).astype("float32")
IMAGES = (RANDOM.uniform(size=(128, 12, 12, 1)) * (0.2 + 0.4 * CLASSES[:128, None, None, None])).astype("float32")
TOKENS = RANDOM.integers(1, 50, (128, 10)) * (np.arange(10) < RANDOM.integers(3, 11, (128, 1)))
SERIES = np.sin(np.arange(128)[:, None] / 5 + np.arange(12)).astype("float32")[..., None]
WORDS = (TOKENS == 7).any(1).astype("float32")

Example = tuple[Any, Any, Any]


def dense(*last: Any, shape: Any = (8,)) -> Any:
    return keras.Sequential([keras.Input(shape), layers.Dense(32, activation="relu"), *last])


def compiled(model: Any, loss: Any, optimizer: Any = "adam", metrics: Any = ()) -> Any:
    model.compile(optimizer, loss, metrics=list(metrics))
    return model


def classes() -> Example:
    model = dense(layers.Dropout(0.2), layers.Dense(3, activation="softmax"))
    return compiled(model, "sparse_categorical_crossentropy", metrics=["accuracy"]), ROWS, CLASSES


def classes_one_hot() -> Example:
    return compiled(dense(layers.Dense(3, activation="softmax")), "categorical_crossentropy"), ROWS, ONE_HOT


def classes_of_logits() -> Example:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return compiled(dense(layers.Dense(3)), loss, keras.optimizers.SGD(0.1)), ROWS, CLASSES


def two_classes() -> Example:
    model = dense(layers.BatchNormalization(), layers.Dense(1, activation="sigmoid"))
    return compiled(model, "binary_crossentropy", metrics=["accuracy", keras.metrics.AUC()]), ROWS, IS_TWO


def two_classes_of_logits() -> Example:
    return compiled(dense(layers.Dense(1)), keras.losses.BinaryCrossentropy(from_logits=True)), ROWS, IS_TWO


def several_labels() -> Example:
    model = dense(layers.Dense(4, activation="sigmoid"))
    return compiled(model, "binary_crossentropy"), ROWS, (SCORES > 0).astype("float32")


def focal() -> Example:
    model = dense(layers.Dense(4, activation="sigmoid"))
    return compiled(model, keras.losses.BinaryFocalCrossentropy()), ROWS, (SCORES > 0).astype("float32")


def prices() -> Example:
    return compiled(dense(layers.Dense(1)), "mse", keras.optimizers.Adam(0.01)), ROWS, PRICES


def prices_robust() -> Example:
    return compiled(dense(layers.Dense(1)), keras.losses.Huber(), "rmsprop", ["mae"]), ROWS, PRICES


def prices_absolute() -> Example:
    return compiled(dense(layers.Dense(1)), "mae", keras.optimizers.Adam(0.01)), ROWS, PRICES


def line() -> Example:
    normalised = layers.Normalization()
    normalised.adapt(ROWS)
    model = keras.Sequential([keras.Input((8,)), normalised, layers.Dense(1)])
    return compiled(model, "mae", keras.optimizers.Adam(0.1)), ROWS, PRICES


def counts() -> Example:
    y = RANDOM.poisson(np.exp(0.3 * SCORES[:, 0])).astype("float32")
    return compiled(dense(layers.Dense(1, activation="exponential")), "poisson"), ROWS, y


def quantiles() -> Example:
    """Three outputs for one target, on purpose."""

    def pinball(y: Any, q: Any) -> Any:
        error = y - q
        parts = ops.convert_to_tensor([0.1, 0.5, 0.9])
        return ops.mean(ops.maximum(parts * error, (parts - 1) * error))

    return compiled(dense(layers.Dense(3)), pinball), ROWS, PRICES[:, None]


def members_of_an_ensemble() -> Example:
    """Four outputs for one target, on purpose."""
    return compiled(dense(layers.Dense(4)), "mse", keras.optimizers.Adam(0.01)), ROWS, PRICES[:, None]


def convolutions() -> Example:
    model = keras.Sequential(
        [
            keras.Input((12, 12, 1)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(3, activation="softmax"),
        ]
    )
    return compiled(model, "categorical_crossentropy", metrics=["accuracy"]), IMAGES, ONE_HOT[:128]


def residual() -> Example:
    inputs = keras.Input((12, 12, 1))
    x = layers.Conv2D(8, 3, padding="same")(inputs)
    y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same")(x)))
    x = layers.GlobalAveragePooling2D()(layers.add([x, y]))
    model = keras.Model(inputs, layers.Dense(3)(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return compiled(model, loss, keras.optimizers.AdamW(1e-3)), IMAGES, CLASSES[:128]


def autoencoder() -> Example:
    model = keras.Sequential(
        [
            keras.Input((12, 12, 1)),
            layers.Conv2D(8, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(1, 3, padding="same", activation="sigmoid"),
        ]
    )
    return compiled(model, "binary_crossentropy"), IMAGES, IMAGES


def linear_autoencoder() -> Example:
    model = keras.Sequential([keras.Input((8,)), layers.Dense(3), layers.Dense(8)])
    return compiled(model, "mse"), ROWS, ROWS


def matrix_factors() -> Example:
    user, film = keras.Input((1,), dtype="int32"), keras.Input((1,), dtype="int32")
    one, other = layers.Embedding(50, 8)(user), layers.Embedding(50, 8)(film)
    rating = layers.Dense(1)(layers.Flatten()(layers.multiply([one, other])))
    return compiled(keras.Model([user, film], rating), "mse"), [TOKENS[:, :1], TOKENS[:, 1:2]], SCORES[:128, :1]


def words() -> Example:
    model = keras.Sequential(
        [
            keras.Input((10,), dtype="int32"),
            layers.Embedding(50, 16),
            layers.GlobalAveragePooling1D(),
            layers.Dense(16, activation="relu"),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    return compiled(model, "binary_crossentropy", metrics=["accuracy"]), TOKENS, WORDS


def recurrent() -> Example:
    model = keras.Sequential([keras.Input((12, 1)), layers.LSTM(16), layers.Dense(1)])
    return compiled(model, "mse"), SERIES[:, :], np.sin(np.arange(128)[:, None] / 5 + 12).astype("float32")


def both_directions() -> Example:
    model = keras.Sequential(
        [
            keras.Input((10,), dtype="int32"),
            layers.Embedding(50, 16, mask_zero=True),
            layers.Bidirectional(layers.GRU(8)),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    return compiled(model, "binary_crossentropy"), TOKENS, WORDS


def transformer() -> Example:
    inputs = keras.Input((10,), dtype="int32")
    x = layers.Embedding(50, 16)(inputs)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(16)(layers.Dense(32, activation="gelu")(x)))
    outputs = layers.Dense(2, activation="softmax")(layers.GlobalAveragePooling1D()(x))
    return compiled(keras.Model(inputs, outputs), "sparse_categorical_crossentropy"), TOKENS, WORDS.astype(int)


def features_kept() -> Example:
    """Fine-tuning: only the new layer is trained."""
    base = keras.Sequential([keras.Input((8,)), layers.Dense(16, activation="tanh")])
    base.trainable = False
    model = keras.Sequential([keras.Input((8,)), base, layers.Dense(3, activation="softmax")])
    return compiled(model, "sparse_categorical_crossentropy", keras.optimizers.Adam(1e-3)), ROWS, CLASSES


def two_heads() -> Example:
    inputs = keras.Input((8,))
    x = layers.Dense(32, activation="relu")(inputs)
    heads = {"kind": layers.Dense(3, activation="softmax")(x), "price": layers.Dense(1)(x)}
    losses = {"kind": "sparse_categorical_crossentropy", "price": "mse"}
    return compiled(keras.Model(inputs, heads), losses), ROWS, {"kind": CLASSES, "price": PRICES}


def scheduled() -> Example:
    rate = keras.optimizers.schedules.CosineDecay(0.0, 60, warmup_target=0.05, warmup_steps=10)
    optimizer = keras.optimizers.SGD(rate, momentum=0.9, nesterov=True)
    model = dense(layers.Dense(3, activation="softmax"))
    return compiled(model, "sparse_categorical_crossentropy", optimizer), ROWS, CLASSES


def smoothed() -> Example:
    loss = keras.losses.CategoricalCrossentropy(label_smoothing=0.1)
    return compiled(dense(layers.Dense(3, activation="softmax")), loss), ROWS, ONE_HOT


def scaled_to_tanh() -> Example:
    return compiled(dense(layers.Dense(4, activation="tanh")), "mse"), ROWS, np.tanh(SCORES)


EXAMPLES: tuple[Callable[[], Example], ...] = (
    classes, classes_one_hot, classes_of_logits, two_classes, two_classes_of_logits, several_labels, focal, prices,
    prices_robust, prices_absolute, line, counts, quantiles, members_of_an_ensemble, convolutions, residual,
    autoencoder, linear_autoencoder, matrix_factors, words, recurrent, both_directions, transformer, features_kept,
    two_heads, scheduled, smoothed, scaled_to_tanh,
)  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.__name__)
def test_nothing_is_said_above_information(tmp_path: Path, example: Callable[[], Example]) -> None:
    keras.utils.set_random_seed(7)
    tf.keras.backend.clear_session()
    model, x, y = example()

    model.fit(x, y, batch_size=16, epochs=4, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    report = tb_gradflow.open_log(tmp_path).report()
    assert [(each.cause, each.message) for each in report.findings if each.severity != "info"] == []
    assert report.to_dict()["verdict"]["kind"] in ("nothing_found", "learned")
