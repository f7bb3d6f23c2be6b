# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Ram(keras.Model):
    def __init__(self):
        super().__init__(name="ram")
        self.context = keras.layers.Dense(8, activation="relu", name="context")
        self.locate = keras.layers.Dense(2, activation="tanh", name="locate")
        self.look = keras.layers.Dense(8, activation="relu", name="look")
        self.label = keras.layers.Dense(3, name="label")

    def call(self, images):
        small = tf.reshape(tf.nn.avg_pool2d(images, 4, 4, "VALID"), [-1, 9])
        h = self.context(small)
        where = self.locate(h)
        grid = tf.linspace(-1.0, 1.0, 12)
        places = where[:, :, None] + tf.linspace(-0.3, 0.3, 4)
        rows, columns = tf.unstack(tf.nn.relu(1.0 - 5.5 * tf.abs(grid - places[..., None])), axis=1)
        patch = tf.einsum("bir,bjc,brcd->bijd", rows, columns, images)
        g = self.look(tf.reshape(patch, [-1, 16]))
        return self.label(tf.concat([h, g], -1))


def build():
    keras.utils.set_random_seed(512)
    model = Ram()
    rng = np.random.default_rng(512)
    x = rng.uniform(size=(6, 12, 12, 1)).astype("float32")
    y = rng.integers(0, 3, 6).astype("int32")
    model(x[:2])
    model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
