# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Glimpse(keras.layers.Layer):
    """Crops the region that a small network proposes; crop_and_resize has a gradient for its boxes."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.propose = keras.layers.Dense(4, kernel_initializer=keras.initializers.RandomNormal(0.05), name="propose")

    def build(self, shape):
        self.propose.build((None, shape[1] * shape[2] * shape[3]))

    def call(self, image):
        batch = tf.shape(image)[0]
        offset = self.propose(tf.reshape(image, [batch, 64]))
        boxes = tf.constant([0.15, 0.2, 0.8, 0.85]) + 0.1 * tf.tanh(offset)
        return tf.image.crop_and_resize(image, boxes, tf.range(batch), [5, 5])

    def compute_output_shape(self, shape):
        return (shape[0], 5, 5, shape[-1])


def build():
    keras.utils.set_random_seed(133)
    image = keras.Input((8, 8, 1), name="image")
    h = Glimpse(name="glimpse")(image)
    h = keras.layers.Conv2D(4, 3, activation="tanh", name="conv")(h)
    h = keras.layers.Flatten(name="flat")(h)
    model = keras.Model(image, keras.layers.Dense(1, name="count")(h))
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(133)
    x = rng.uniform(size=(6, 8, 8, 1)).astype("float32")
    y = rng.normal(size=(6, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
