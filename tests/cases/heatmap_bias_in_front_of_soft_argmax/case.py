# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class SoftArgmax(keras.layers.Layer):
    def call(self, heat):
        h, w, c = heat.shape[1:]
        p = tf.nn.softmax(tf.reshape(heat, [-1, h * w, c]), axis=1)
        rows, columns = tf.meshgrid(tf.linspace(-1.0, 1.0, h), tf.linspace(-1.0, 1.0, w), indexing="ij")
        grid = tf.stack([tf.reshape(rows, [-1]), tf.reshape(columns, [-1])], axis=1)
        return tf.einsum("bpc,pd->bcd", p, grid)

    def compute_output_shape(self, s):
        return (s[0], s[-1], 2)


def build():
    keras.utils.set_random_seed(73)
    image = keras.Input((8, 8, 1), name="image")
    h = keras.layers.Conv2D(4, 3, padding="same", activation="relu", name="features")(image)
    heat = keras.layers.Conv2D(2, 1, name="heatmaps")(h)
    model = keras.Model(image, SoftArgmax(name="keypoints")(heat))
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(73)
    return {
        "kind": "keras",
        "model": model,
        "x": rng.random((4, 8, 8, 1)).astype("float32"),
        "y": rng.uniform(-1, 1, (4, 2, 2)).astype("float32"),
        "fit_kwargs": {"batch_size": 4},
    }
