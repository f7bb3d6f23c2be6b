"""The models that the benchmarks train, each with one batch of synthetic data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

layers = keras.layers
Made = tuple[Any, Any, Any]
"""A model whose last layer gives ten logits, a batch, and its labels."""


def resnet50(size: int = 64, rows: int = 16) -> Made:
    shape = (size, size, 3)
    model = keras.applications.ResNet50(weights=None, input_shape=shape, classes=10, classifier_activation=None)
    return model, _normal(rows, *shape), np.arange(rows) % 10


def efficientnet() -> Made:
    model = keras.applications.EfficientNetB0(
        weights=None, input_shape=(64, 64, 3), classes=10, classifier_activation=None
    )
    return model, _normal(16, 64, 64, 3), np.arange(16) % 10


def cnn() -> Made:
    blocks = [
        layer
        for width in (32, 64, 128)
        for layer in (layers.Conv2D(width, 3, padding="same"), layers.BatchNormalization(), layers.ReLU())
    ]
    model = keras.Sequential([keras.Input((32, 32, 3)), *blocks, layers.GlobalAveragePooling2D(), layers.Dense(10)])
    return model, _normal(64, 32, 32, 3), np.arange(64) % 10


def mlp() -> Made:
    hidden = [layers.Dense(256, "relu") for _ in range(4)]
    return keras.Sequential([keras.Input((128,)), *hidden, layers.Dense(10)]), _normal(64, 128), np.arange(64) % 10


def lstm() -> Made:
    stacked = [layers.LSTM(64, return_sequences=True), layers.LSTM(64)]
    return (
        keras.Sequential([keras.Input((50, 32)), *stacked, layers.Dense(10)]),
        _normal(32, 50, 32),
        np.arange(32) % 10,
    )


def transformer(blocks: int = 4) -> Made:
    inputs = keras.Input((64,), dtype="int32")
    x = layers.Embedding(1000, 128)(inputs)
    for _ in range(blocks):
        attended = layers.MultiHeadAttention(4, 32)(*[layers.LayerNormalization()(x)] * 2)
        x = x + attended
        x = x + layers.Dense(128)(layers.Dense(512, "gelu")(layers.LayerNormalization()(x)))
    model = keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
    return model, np.random.default_rng(0).integers(0, 1000, (16, 64)), np.arange(16) % 10


def residual(count: int) -> Made:
    """As many small layers, each with a residual connection: a step of many ops that do little."""
    inputs = keras.Input((16,))
    value = inputs
    for _ in range(count):
        value = layers.add([value, layers.Dense(16, "tanh")(value)])
    return keras.Model(inputs, layers.Dense(10)(value)), _normal(8, 16), np.arange(8) % 10


MODELS: dict[str, Callable[[], Made]] = {
    "mlp": mlp,
    "cnn": cnn,
    "lstm": lstm,
    "transformer": transformer,
    "resnet50": resnet50,
    "efficientnet": efficientnet,
}


def _normal(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype("float32")
