# mypy: ignore-errors
"""Reversible-style block that recomputes its activations; the weight gradients are recomputed with them."""

import keras
import numpy as np
import tensorflow as tf


class RecomputedMLP(keras.layers.Layer):
    """x + W2 gelu(W1 x), forward without storing the hidden activation"""

    def __init__(self, hidden, **kwargs):
        super().__init__(**kwargs)
        self.hidden = hidden

    def build(self, shape):
        width = shape[-1]
        self.w1 = self.add_weight(name="w1", shape=(width, self.hidden), initializer="glorot_uniform")
        self.w2 = self.add_weight(name="w2", shape=(self.hidden, width), initializer="glorot_uniform")

    def _inner(self, x):
        return x + tf.matmul(tf.nn.gelu(tf.matmul(x, self.w1)), self.w2)

    def call(self, x):
        @tf.custom_gradient
        def block(x):
            y = self._inner(x)

            def grad(dy, variables=None):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    again = self._inner(x)
                dx, dw = tape.gradient(again, [x, variables], output_gradients=dy)
                return dx, dw

            return y, grad

        return block(x)


class Encoder(keras.layers.Layer):
    def __init__(self, depth, **kwargs):
        super().__init__(**kwargs)
        self.blocks = [RecomputedMLP(10, name=f"block{i}") for i in range(depth)]
        self.norms = [keras.layers.LayerNormalization(name=f"norm{i}") for i in range(depth)]

    def build(self, shape):
        for block, norm in zip(self.blocks, self.norms, strict=True):
            norm.build(shape)
            block.build(shape)
        self.built = True

    def call(self, x):
        for block, norm in zip(self.blocks, self.norms, strict=True):
            x = block(norm(x))
        return x


def build():
    keras.utils.set_random_seed(71)
    tokens = keras.Input((6,), dtype="int32")
    h = keras.layers.Embedding(20, 8, name="embed")(tokens)
    h = Encoder(2, name="encoder")(h)
    h = keras.layers.GlobalAveragePooling1D(name="pool")(h)
    model = keras.Model(tokens, keras.layers.Dense(3, activation="softmax", name="label")(h))
    model.compile("adam", loss="sparse_categorical_crossentropy")
    rng = np.random.default_rng(71)
    x = rng.integers(0, 20, size=(8, 6)).astype("int32")
    y = rng.integers(0, 3, size=8)
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
