"""Programs whose edits are tried. Not in a test module: pytest rewrites the code of those."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

X = np.random.default_rng(0).uniform(0, 4, (64, 4)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


class Rounded(keras.layers.Layer):
    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(name="scale", initializer="ones")

    def call(self, x: Any) -> Any:
        y = x * self.scale
        return tf.round(y)


def rounding(*between: Any, **compiled: Any) -> keras.Model:
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((4,)), Rounded(), *between, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mse", **compiled)
    return model


class Lengths(keras.layers.Layer):
    """The length of a row of zeros has no derivative."""

    def build(self, shape: Any) -> None:
        self.w = self.add_weight(shape=(4,), name="w", initializer=keras.initializers.Constant(0.5))

    def call(self, x: Any) -> Any:
        return tf.norm(x * self.w, axis=1, keepdims=True)


class Trainer:
    """Owned by nobody when the program ends."""

    def __init__(self) -> None:
        self.limit = tf.Variable(1.0, name="limit")
        self.weight = tf.Variable([[0.3]] * 4, name="weight")
        self.optimizer = keras.optimizers.SGD(0.01)

    @tf.function
    def step(self, batches: Any) -> Any:
        x, y = next(batches)
        with tf.GradientTape() as tape:
            out = x @ self.weight
            gate = tf.cast(out > self.limit, tf.float32)
            loss = tf.reduce_mean(tf.square(gate * out - y))
        variables = [self.weight, self.limit]
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss


class Hard(keras.layers.Layer):
    def call(self, x: Any) -> Any:
        return tf.round(x)


def stepped(*, is_built: bool) -> keras.Model:
    """Raises in its first step: no variable gets a gradient."""
    keras.utils.set_random_seed(3)
    given = [keras.Input((4,))] if is_built else []
    model = keras.Sequential([*given, keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1), Hard()])
    model.compile("adam", "mse")
    return model


class Fit:
    """Its step raises: its only variable gets no gradient."""

    def __init__(self) -> None:
        self.weight = tf.Variable([[0.3]] * 4, name="weight")
        self.optimizer = keras.optimizers.SGD(0.01)

    @tf.function
    def step(self, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.round(x @ self.weight) - y))
        self.optimizer.apply_gradients([(tape.gradient(loss, self.weight), self.weight)])
        return loss


def eager_loop(seen: list[Any]) -> None:
    """Keeps a tensor of each step."""
    weight, scale = tf.Variable([[0.3]] * 4, name="weight"), tf.Variable(1.0, name="scale")
    for _ in range(3):
        with tf.GradientTape() as tape:
            out = scale * tf.round(X @ weight)
            seen.append(out)
            loss = tf.reduce_mean(tf.square(out - Y))
        for variable, gradient in zip((weight, scale), tape.gradient(loss, (weight, scale)), strict=True):
            if gradient is not None:
                variable.assign_sub(0.01 * gradient)
