"""Models trained by `fit`, one for each way in which Keras lets people change a training: name -> how to make it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf

layers = keras.layers
ROWS = 16


@dataclass(frozen=True)
class Training:
    """A compiled model, and what `fit` is given besides the number of steps."""

    model: Any
    x: Any
    y: Any
    fit: dict[str, Any] = field(default_factory=dict)


def numbers(*shape: int, seed: int = 3) -> Any:
    return np.random.default_rng(seed).normal(size=(ROWS, *shape)).astype("float32")


def tokens(length: int = 4, vocabulary: int = 9) -> Any:
    return np.random.default_rng(4).integers(1, vocabulary, (ROWS, length)).astype("int32")


def dense(optimizer: Any = None, **options: Any) -> Training:
    x = keras.Input((6,))
    hidden = layers.Dense(8, "tanh", name="a", kernel_regularizer=options.pop("regularizer", None))(x)
    model = keras.Model(x, layers.Dense(2, name="b", kernel_constraint=options.pop("constraint", None))(hidden))
    model.compile(optimizer or keras.optimizers.SGD(0.05), "mse", **options)
    return Training(model, numbers(6), numbers(2))


def chain(x: Any, inputs: Any, *parts: Any) -> Training:
    tensor = inputs
    for part in parts:
        tensor = part(tensor)
    model = keras.Model(inputs, tensor)
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return Training(model, x, numbers(2))


def two_outputs() -> Training:
    x = keras.Input((6,))
    hidden = layers.Dense(8, "tanh", name="a")(x)
    model = keras.Model(x, [layers.Dense(2, name="b")(hidden), layers.Dense(1, name="c")(hidden)])
    model.compile("sgd", ["mse", "mae"], loss_weights=[0.3, 2.0])
    return Training(model, numbers(6), [numbers(2), numbers(1)])


def two_inputs() -> Training:
    one, other = keras.Input((6,), name="one"), keras.Input((3,), name="other")
    joined = layers.Concatenate()([layers.Dense(4, name="a")(one), layers.Dense(4, name="b")(other)])
    model = keras.Model({"one": one, "other": other}, layers.Dense(2, name="c")(joined))
    model.compile("sgd", "mse")
    return Training(model, {"one": numbers(6), "other": numbers(3)}, numbers(2))


def nested() -> Training:
    inner = keras.Sequential([keras.Input((6,)), layers.Dense(6, "tanh", name="a")], name="inner")
    x = keras.Input((6,))
    return chain(numbers(6), x, inner, inner, layers.Dense(2, name="b"))


def weighted() -> Training:
    made = dense()
    return Training(made.model, made.x, made.y, {"sample_weight": np.linspace(0, 2, ROWS).astype("float32")})


def embedded() -> Training:
    return chain(tokens(), keras.Input((4,), dtype="int32"), layers.Embedding(9, 5, name="table"), layers.Flatten(),
                 layers.Dense(2, name="b"))  # fmt: skip


def masked(layer: Any) -> Training:
    x = numbers(5, 3)
    x[:, 3:] = 0.0
    return chain(x, keras.Input((5, 3)), layers.Masking(), layer, layers.Dense(2, name="b"))


def sequence(layer: Any) -> Training:
    return chain(numbers(5, 3), keras.Input((5, 3)), layer, layers.Dense(2, name="b"))


def ragged() -> Training:
    class Mean(keras.Model):
        def __init__(self) -> None:
            super().__init__(name="mean")
            self.table = layers.Embedding(9, 5, name="table")
            self.out = layers.Dense(2, name="out")

        def call(self, x: Any) -> Any:
            return self.out(tf.reduce_mean(tf.ragged.map_flat_values(self.table, x), 1))

    model = Mean()
    model.compile("sgd", "mse")
    lengths = np.random.default_rng(5).integers(1, 5, ROWS)
    x = tf.RaggedTensor.from_row_lengths(np.arange(lengths.sum()) % 9, lengths)
    batches = tf.data.Dataset.from_tensor_slices((x, numbers(2))).batch(ROWS)
    return Training(model, batches, None)


def sparse() -> Training:
    class Product(keras.Model):
        def __init__(self) -> None:
            super().__init__(name="product")
            self.w = self.add_weight(name="w", shape=(6, 2), initializer="glorot_uniform")

        def call(self, x: Any) -> Any:
            return tf.sparse.sparse_dense_matmul(x, self.w)

    model = Product()
    model.compile("sgd", "mse")
    x = tf.sparse.from_dense(np.where(numbers(6) > 0.3, numbers(6), 0.0))
    return Training(model, tf.data.Dataset.from_tensor_slices((x, numbers(2))).batch(ROWS), None)


def with_policy(policy: str) -> Training:
    keras.mixed_precision.set_global_policy(policy)
    try:
        return dense()
    finally:
        keras.mixed_precision.set_global_policy("float32")


def double() -> Training:
    keras.config.set_floatx("float64")
    keras.mixed_precision.set_global_policy("float64")
    try:
        made = dense()
    finally:
        keras.config.set_floatx("float32")
        keras.mixed_precision.set_global_policy("float32")
    return Training(made.model, made.x.astype("float64"), made.y.astype("float64"))


class Recomputed(keras.layers.Layer):
    """Forgets its activations, and computes them again on the way back."""

    def build(self, shape: Any) -> None:
        self.w = self.add_weight(name="w", shape=(shape[-1], 6))

    def call(self, x: Any) -> Any:
        return tf.recompute_grad(lambda value: tf.tanh(tf.matmul(value, self.w)))(x)


class OwnGradient(keras.layers.Layer):
    """A custom gradient that has variables."""

    def build(self, shape: Any) -> None:
        self.w = self.add_weight(name="w", shape=(shape[-1], 6))

    def call(self, x: Any) -> Any:
        @tf.custom_gradient
        def product(value: Any) -> Any:
            kernel = tf.convert_to_tensor(self.w)

            def gradient(upstream: Any, variables: Any = None) -> Any:
                on_variables = [2.0 * tf.matmul(value, upstream, transpose_a=True) for _ in variables or ()]
                return tf.matmul(upstream, kernel, transpose_b=True), on_variables

            return tf.matmul(value, self.w.value), gradient

        return product(x)


class FromPython(keras.layers.Layer):
    def call(self, x: Any) -> Any:
        return tf.ensure_shape(tf.py_function(lambda value: tf.sin(value) * 2.0, [x], tf.float32), x.shape)


KERAS: dict[str, Callable[[], Training]] = {
    "gradient accumulation": lambda: dense(keras.optimizers.SGD(0.05, gradient_accumulation_steps=2)),
    "clipnorm": lambda: dense(keras.optimizers.SGD(0.05, clipnorm=0.01)),
    "global clipnorm": lambda: dense(keras.optimizers.SGD(0.05, global_clipnorm=0.01)),
    "clipvalue": lambda: dense(keras.optimizers.SGD(0.05, clipvalue=0.01)),
    "moving average of the weights": lambda: dense(keras.optimizers.SGD(0.05, use_ema=True)),
    "weight decay": lambda: dense(keras.optimizers.AdamW(0.01, weight_decay=0.1)),
    "loss weights and several outputs": two_outputs,
    "sample weights": weighted,
    "several inputs": two_inputs,
    "nested and shared": nested,
    "regularisers": lambda: dense(regularizer=keras.regularizers.L2(0.3)),
    "constraints": lambda: dense(constraint=keras.constraints.MaxNorm(0.1)),
    "embedding": embedded,
    "masking": lambda: masked(layers.LSTM(4, name="lstm")),
    "simple RNN": lambda: sequence(layers.SimpleRNN(4, name="rnn")),
    "GRU": lambda: sequence(layers.GRU(4, name="gru")),
    "bidirectional": lambda: sequence(layers.Bidirectional(layers.LSTM(3, name="lstm"))),
    "unrolled": lambda: sequence(layers.LSTM(4, unroll=True, name="lstm")),
    "time distributed": lambda: chain(
        numbers(5, 3), keras.Input((5, 3)), layers.TimeDistributed(layers.Dense(4, "tanh", name="each")),
        layers.Flatten(), layers.Dense(2, name="b"),
    ),
    "batch normalisation": lambda: chain(
        numbers(6), keras.Input((6,)), layers.Dense(4, use_bias=False, name="a"), layers.BatchNormalization(name="bn"),
        layers.Dense(2, name="b"),
    ),
    "Lambda": lambda: chain(
        numbers(6), keras.Input((6,)), layers.Dense(4, name="a"), layers.Lambda(lambda value: value**2),
        layers.Dense(2, name="b"),
    ),
    "ragged input": ragged,
    "sparse input": sparse,
    "mixed_bfloat16": lambda: with_policy("mixed_bfloat16"),
    "mixed_float16": lambda: with_policy("mixed_float16"),
    "float64": double,
    "XLA": lambda: dense(jit_compile=True),
    "recompute_grad": lambda: chain(numbers(6), keras.Input((6,)), Recomputed(name="r"), layers.Dense(2, name="b")),
    "custom gradient with variables": lambda: chain(
        numbers(6), keras.Input((6,)), OwnGradient(name="own"), layers.Dense(2, name="b")
    ),
    "py_function": lambda: chain(
        numbers(6), keras.Input((6,)), layers.Dense(4, name="a"), FromPython(), layers.Dense(2, name="b")
    ),
}  # fmt: skip
