# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class PoolWithSwitches(keras.layers.Layer):
    def call(self, x):
        pooled, switches = tf.nn.max_pool_with_argmax(x, 2, 2, "SAME", include_batch_in_index=True)
        return pooled, tf.cast(switches, tf.int32)

    def compute_output_shape(self, s):
        return (s[0], s[1] // 2, s[2] // 2, s[3]), (s[0], s[1] // 2, s[2] // 2, s[3])


class Unpool(keras.layers.Layer):
    def call(self, x, switches):
        b, h, w, c = tf.unstack(tf.shape(x))
        flat = tf.scatter_nd(tf.reshape(switches, [-1, 1]), tf.reshape(x, [-1]), [b * h * w * c * 4])
        out = tf.reshape(flat, [b, h * 2, w * 2, c])
        return tf.ensure_shape(out, [None, x.shape[1] * 2, x.shape[2] * 2, x.shape[3]])

    def compute_output_shape(self, x_shape, switches_shape):
        return (x_shape[0], x_shape[1] * 2, x_shape[2] * 2, x_shape[3])


def build():
    keras.utils.set_random_seed(51)
    image = keras.Input((8, 8, 2), name="image")
    h = keras.layers.Conv2D(3, 3, padding="same", activation="relu", name="down")(image)
    h, switches = PoolWithSwitches(name="pool")(h)
    h = keras.layers.Conv2D(3, 3, padding="same", activation="relu", name="mid")(h)
    h = Unpool(name="unpool")(h, switches)
    out = keras.layers.Conv2D(2, 1, name="mask")(h)
    model = keras.Model(image, out)
    model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(51)
    return {
        "kind": "keras",
        "model": model,
        "x": rng.normal(size=(3, 8, 8, 2)).astype("float32"),
        "y": rng.integers(0, 2, (3, 8, 8)),
        "fit_kwargs": {"batch_size": 3},
    }
