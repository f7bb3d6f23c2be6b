# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class PoincareDistance(keras.layers.Layer):
    def call(self, u, v):
        gap = tf.reduce_sum((u - v) ** 2, axis=-1)
        room = (1.0 - tf.reduce_sum(u**2, axis=-1)) * (1.0 - tf.reduce_sum(v**2, axis=-1))
        return tf.math.acosh(1.0 + 2.0 * gap / room)

    def compute_output_shape(self, u_shape, v_shape):
        return u_shape[:-1]


def build():
    keras.utils.set_random_seed(13)
    child = keras.Input((), dtype="int32", name="child")
    parent = keras.Input((), dtype="int32", name="parent")
    words = keras.layers.Embedding(
        10, 3, embeddings_initializer=keras.initializers.RandomUniform(-0.1, 0.1), name="words"
    )
    out = PoincareDistance(name="distance")(words(child), words(parent))
    model = keras.Model([child, parent], out)
    model.compile("sgd", loss="mse")
    x = [np.array([1, 2, 3, 4], "int32"), np.array([5, 2, 7, 0], "int32")]
    return {
        "kind": "keras",
        "model": model,
        "x": x,
        "y": np.array([1.0, 0.0, 1.0, 0.5], "float32"),
        "fit_kwargs": {"batch_size": 4},
    }
