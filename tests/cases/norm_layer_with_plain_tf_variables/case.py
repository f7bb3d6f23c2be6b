# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class FilterResponseNorm(keras.layers.Layer):
    """Filter response normalisation with a thresholded linear unit, ported from Keras 2."""

    def __init__(self, channels, **kwargs):
        super().__init__(**kwargs)
        self.gamma = tf.Variable(tf.ones([channels]), name="gamma", trainable=True)
        self.beta = tf.Variable(tf.zeros([channels]), name="beta", trainable=True)
        self.tau = tf.Variable(tf.zeros([channels]), name="tau", trainable=True)

    def call(self, x):
        power = tf.reduce_mean(tf.square(x), axis=[1, 2], keepdims=True)
        y = self.gamma * x * tf.math.rsqrt(power + 1e-6) + self.beta
        return tf.maximum(y, self.tau)

    def compute_output_shape(self, shape):
        return shape


def build():
    keras.utils.set_random_seed(99)
    image = keras.Input((8, 8, 2), name="image")
    h = keras.layers.Conv2D(4, 3, name="conv1")(image)
    h = FilterResponseNorm(4, name="frn1")(h)
    h = keras.layers.Conv2D(6, 3, name="conv2")(h)
    h = FilterResponseNorm(6, name="frn2")(h)
    h = keras.layers.GlobalAveragePooling2D(name="gap")(h)
    model = keras.Model(image, keras.layers.Dense(3, name="logits")(h))
    model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(99)
    x = rng.normal(size=(6, 8, 8, 2)).astype("float32")
    y = rng.integers(0, 3, size=(6,))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
