"""Random models of Keras layers, for `identical`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

layers, optimizers = keras.layers, keras.optimizers

ROWS = 48
ACTIVATIONS = (
    *("relu", "tanh", "gelu", "swish", "softplus", "mish", "elu", "selu", "sigmoid", "hard_sigmoid", "softsign"),
    *("leaky_relu", "relu6", "exponential", "hard_silu", "celu"),
)
OPTIMIZERS: tuple[Callable[[], Any], ...] = (
    lambda: optimizers.SGD(0.01),
    lambda: optimizers.SGD(0.01, momentum=0.9),
    lambda: optimizers.SGD(0.01, momentum=0.9, nesterov=True),
    lambda: optimizers.SGD(0.01, weight_decay=0.01),
    lambda: optimizers.SGD(0.01, clipnorm=0.5),
    lambda: optimizers.SGD(0.01, global_clipnorm=0.5),
    lambda: optimizers.SGD(0.01, clipvalue=0.1),
    lambda: optimizers.SGD(optimizers.schedules.CosineDecay(0.01, 50)),
    lambda: optimizers.RMSprop(0.001),
    lambda: optimizers.RMSprop(0.001, centered=True, momentum=0.5),
    lambda: optimizers.Adagrad(0.01),
    lambda: optimizers.Adadelta(0.1),
    lambda: optimizers.Adafactor(0.01),
    lambda: optimizers.Adam(0.001),
    lambda: optimizers.Adam(0.001, amsgrad=True),
    lambda: optimizers.Adam(0.001, gradient_accumulation_steps=2),
    lambda: optimizers.AdamW(0.001, weight_decay=0.01, use_ema=True),
    lambda: optimizers.Adamax(0.001),
    lambda: optimizers.Nadam(0.001),
    lambda: optimizers.Ftrl(0.01),
    lambda: optimizers.Lamb(0.001),
    lambda: optimizers.Lion(0.001),
)
OF_NUMBERS = ("mse", "mae", "huber", "log_cosh", "cosine_similarity")
OF_PROBABILITIES = ("binary_crossentropy", "kl_divergence", "poisson", "mean_squared_logarithmic_error")
SHAPES = {2: (6,), 3: (5, 4), 4: (6, 6, 2)}
"""Of one example, by the rank of a batch."""


def random_layers(seed: int) -> tuple[Any, Any, Any, Any]:
    """A compiled model, and inputs, targets and sample weights (or none) to train it with."""
    draw = random.Random(seed)
    rank = draw.choice([2, 2, 3, 4])
    inputs = x = keras.Input(SHAPES[rank])
    for _ in range(draw.randint(1, 3)):
        x = _BLOCKS[rank](draw, x)
    if rank == 3:
        x = draw.choice([layers.GlobalAveragePooling1D, layers.Flatten, lambda: layers.GRU(3)])()(x)
    if rank == 4:
        x = draw.choice([layers.GlobalAveragePooling2D, layers.Flatten, layers.GlobalMaxPooling2D])()(x)
    for _ in range(draw.randint(0, 2)):
        x = _vectors(draw, x)
    loss = draw.choice([*OF_NUMBERS, *OF_PROBABILITIES])
    model = keras.Model(inputs, layers.Dense(2, "sigmoid" if loss in OF_PROBABILITIES else None)(x))
    model.compile(draw.choice(OPTIMIZERS)(), loss, steps_per_execution=draw.choice([1, 1, 1, 2]))
    numbers = np.random.default_rng(seed)
    batch = numbers.normal(size=(ROWS, *SHAPES[rank])).astype("float32")
    targets, weights = (numbers.uniform(size=size).astype("float32") for size in ((ROWS, 2), (ROWS,)))
    return model, batch, targets, weights if draw.random() < 0.3 else None


def _penalty(draw: random.Random) -> Any:
    return draw.choice([None, None, "l2", keras.regularizers.L1L2(1e-3, 1e-3)])


def _vectors(draw: random.Random, x: Any) -> Any:
    activation, penalty, width = draw.choice(ACTIVATIONS), _penalty(draw), x.shape[-1]
    blocks: tuple[Callable[[], Any], ...] = (
        lambda: layers.Multiply()([x, layers.Dense(width, "sigmoid")(x)]),
        lambda: x * 0.5 + layers.Dense(width, activation, kernel_regularizer=penalty)(x) / 1.5,
        lambda: layers.BatchNormalization(gamma_regularizer=penalty)(x),
        lambda: layers.LayerNormalization()(x),
        lambda: layers.Activation(activation)(x),
        lambda: layers.Dense(5, activation, kernel_constraint=draw.choice([None, "unit_norm", "max_norm"]))(x),
        lambda: layers.Concatenate()([layers.Dense(3, activation)(x), x]),
        lambda: layers.SpectralNormalization(layers.Dense(4, activation))(x),
        lambda: layers.Dense(6, activation, bias_regularizer=penalty)(layers.GaussianNoise(0.1)(x)),
    )
    return draw.choice(blocks)()


def _sequences(draw: random.Random, x: Any) -> Any:
    activation, width = draw.choice(ACTIVATIONS), x.shape[-1]
    blocks: tuple[Callable[[], Any], ...] = (
        lambda: layers.MultiHeadAttention(2, 3)(x, x),
        lambda: x + layers.Dense(width, activation)(layers.LayerNormalization()(x)),
        lambda: layers.GRU(4, return_sequences=True)(x),
        lambda: layers.LSTM(4, return_sequences=True)(x),
        lambda: layers.SimpleRNN(4, return_sequences=True)(x),
        lambda: layers.Conv1D(4, 3, padding="same", activation="gelu")(x),
        lambda: layers.LayerNormalization()(x),
        lambda: layers.BatchNormalization()(x),
    )
    return draw.choice(blocks)()


def _images(draw: random.Random, x: Any) -> Any:
    activation, penalty = draw.choice(ACTIVATIONS), _penalty(draw)
    blocks: tuple[Callable[[], Any], ...] = (
        lambda: layers.Conv2D(4, 3, padding="same", activation=activation, kernel_regularizer=penalty),
        lambda: layers.DepthwiseConv2D(3, padding="same"),
        lambda: layers.SeparableConv2D(4, 3, padding="same"),
        lambda: layers.Conv2DTranspose(4, 3, padding="same"),
        lambda: layers.AveragePooling2D(2, padding="same"),
        lambda: layers.MaxPooling2D(2, padding="same"),
        lambda: layers.GroupNormalization(2),
        layers.BatchNormalization,
        layers.LayerNormalization,
        layers.UnitNormalization,
        layers.PReLU,
        lambda: layers.Dropout(0.2),
    )
    return draw.choice(blocks)()(x)


_BLOCKS: dict[int, Callable[[random.Random, Any], Any]] = {2: _vectors, 3: _sequences, 4: _images}
