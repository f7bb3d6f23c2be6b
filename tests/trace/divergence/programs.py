"""Small trainings that can be changed in one place, each recorded in every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow
from tb_gradflow.trace.callback import GradFlowCallback

STEPS = 6
BATCH = 8

Array = Any


@dataclass(frozen=True)
class Change:
    """What is done differently.

    Attributes:
        seed: Of Keras and NumPy, before the model is built.
        names: Of layers.
        hidden, out: Settings of these layers.
        between: Makes layers that are put between the two.
        dropout: Its rate.
        optimizer, loss, compiled: The model's own.
        data: Changes the batches.
        built: Is called with the model before it is trained.
        each: Is called with the model and the number of each step, before it.
        update_freq: As of the callback.
        more: Of the program.
    """

    seed: int = 1
    names: tuple[str, str] = ("hidden", "out")
    hidden: dict[str, Any] = field(default_factory=dict)
    out: dict[str, Any] = field(default_factory=dict)
    between: Callable[[], Sequence[Any]] = tuple
    dropout: float = 0.2
    dropout_seed: int = 3
    optimizer: Callable[[], Any] = lambda: keras.optimizers.Adam(0.01)
    loss: Callable[[], Any] = keras.losses.CategoricalCrossentropy
    compiled: dict[str, Any] = field(default_factory=dict)
    data: Callable[[Array, Array], tuple[Array, Array]] = lambda x, y: (x, y)
    built: Callable[[Any], None] = lambda model: None
    each: Callable[[Any, int], None] = lambda model, step: None
    update_freq: Any = 1
    more: dict[str, Any] = field(default_factory=dict)


class _Before(keras.callbacks.Callback):
    def __init__(self, each: Callable[[Any, int], None]) -> None:
        super().__init__()
        self._each = each

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._each(self.model, batch)


def _numbers(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _labels(count: int, classes: int) -> Array:
    return np.eye(classes, dtype=np.float32)[np.random.default_rng(5).integers(0, classes, count)]


def _begun(change: Change) -> None:
    keras.backend.clear_session()
    keras.utils.set_random_seed(change.seed)


def _fitted(model: Any, change: Change, x: Array, y: Array, log_dir: Path) -> None:
    model.compile(change.optimizer(), change.loss(), **change.compiled)
    change.built(model)
    callbacks = [_Before(change.each), GradFlowCallback(str(log_dir), update_freq=change.update_freq)]
    x, y = change.data(x, y)
    model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=callbacks)


def perceptron(log_dir: Path, change: Change) -> None:
    """Two layers of Keras, with dropout between them."""
    _begun(change)
    first, last = change.names
    model = keras.Sequential(
        [
            keras.Input((12,)),
            keras.layers.Dense(name=first, **{"units": 16, "activation": "relu", **change.hidden}),
            *change.between(),
            keras.layers.Dropout(change.dropout, seed=change.dropout_seed),
            keras.layers.Dense(4, name=last, **{"activation": "softmax", **change.out}),
        ]
    )
    _fitted(model, change, _numbers(2, STEPS * BATCH, 12), _labels(STEPS * BATCH, 4), log_dir)


def convolution(log_dir: Path, change: Change) -> None:
    """Convolutions with normalisations, and labels that are numbers."""
    _begun(change)
    more = {"momentum": 0.9, "epsilon": 1e-3, "activation": lambda: keras.layers.Activation("relu"), **change.more}
    norm = {name: more[name] for name in ("momentum", "epsilon")}
    model = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            keras.layers.Conv2D(6, 3, name=change.names[0], padding="same", **change.hidden),
            keras.layers.BatchNormalization(name="norm", **norm),
            more["activation"](),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(5, name=change.names[1], **change.out),
        ]
    )
    labels = _labels(STEPS * BATCH, 5).argmax(-1)
    _fitted(model, change, _numbers(2, STEPS * BATCH, 8, 8, 3), labels, log_dir)


def attention(log_dir: Path, change: Change) -> None:
    """A block of a transformer."""
    _begun(change)
    more = {"scale": 1.0, "epsilon": 1e-3, "positions": 1.0, **change.more}
    inputs = keras.Input((6, 8))
    positions = np.sin(np.arange(48, dtype=np.float32).reshape(6, 8)) * more["positions"]
    shifted = inputs + positions
    attended = keras.layers.MultiHeadAttention(2, 4, name="attend", **change.hidden)(shifted, shifted)
    normed = keras.layers.LayerNormalization(name="norm", epsilon=more["epsilon"])(shifted + more["scale"] * attended)
    wide = keras.layers.Dense(16, "gelu", name=change.names[0])(normed)
    pooled = keras.layers.GlobalAveragePooling1D()(wide)
    model = keras.Model(inputs, keras.layers.Dense(1, name=change.names[1], **change.out)(pooled))
    _fitted(model, change, _numbers(2, STEPS * BATCH, 6, 8), _numbers(4, STEPS * BATCH, 1), log_dir)


def clipped_gradient() -> Callable[[Any], Any]:
    """An identity whose gradient is clipped."""

    @tf.custom_gradient
    def clipped(x: Any) -> Any:
        return tf.identity(x), lambda gradient: tf.clip_by_value(gradient, -0.001, 0.001)

    function: Callable[[Any], Any] = clipped  # TensorFlow's decorator has no types
    return function


def loop(log_dir: Path, change: Change) -> None:
    """A loop with a tape."""
    _begun(change)
    more = {
        "factor": 0.5, "squash": tf.tanh, "around": lambda x: x, "penalty": 0.0, "clip": None, "eager": False,
        "weight": lambda g, step: g, "reduce": tf.reduce_mean, "noise": 0.0, "jit": False, **change.more,
    }  # fmt: skip
    first = tf.Variable(_numbers(change.seed, 10, 12) * 0.3, name="first")
    second = tf.Variable(_numbers(change.seed + 1, 12, 3) * 0.3, name="second")
    offset = tf.Variable(tf.zeros([3]), name="offset")
    variables = [first, second, offset]
    optimizer = keras.optimizers.SGD(0.05) if change.optimizer is Change.optimizer else change.optimizer()
    change.built(variables)

    def train_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            hidden = more["squash"](x @ first)
            if more["noise"]:
                hidden += more["noise"] * tf.random.stateless_normal([BATCH, 12], [3, more.get("noise_seed", 4)])
            hidden = more["around"](hidden * more["factor"])
            error = tf.math.squared_difference(hidden @ second + offset, y)
            loss = more["reduce"](error) + more["penalty"] * tf.nn.l2_loss(second)
        gradients = tape.gradient(loss, variables)
        if more["clip"] is not None:
            gradients = [tf.clip_by_norm(gradient, more["clip"]) for gradient in gradients]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    step = tb_gradflow.watch(str(log_dir), update_freq=change.update_freq)(
        train_step if more["eager"] else tf.function(train_step, jit_compile=more["jit"])
    )
    x, y = change.data(_numbers(2, STEPS * BATCH, 10), _numbers(4, STEPS * BATCH, 3))
    for number in range(STEPS):
        change.each(variables, number)
        batch = slice(number * BATCH, (number + 1) * BATCH)
        step(tf.constant(x[batch]), tf.constant(y[batch]))
    step.flush()
