# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class GeM(keras.layers.Layer):
    """Generalised mean pooling with a learned exponent."""

    def build(self, shape):
        self.p = self.add_weight(name="p", shape=(), initializer=keras.initializers.Constant(3.0))

    def call(self, x):
        return tf.reduce_mean(x**self.p, axis=[1, 2]) ** (1.0 / self.p)

    def compute_output_shape(self, shape):
        return (shape[0], shape[-1])


def build():
    keras.utils.set_random_seed(66)
    image = keras.Input((8, 8, 3), name="image")
    bias = keras.initializers.RandomUniform(-6.0, 1.0, seed=4)
    h = keras.layers.Conv2D(8, 3, activation="relu", bias_initializer=bias, name="features")(image)
    h = GeM(name="gem")(h)
    h = keras.layers.Dense(6, name="embedding")(h)
    out = keras.layers.UnitNormalization(name="unit")(h)
    model = keras.Model(image, out)
    model.compile("adam", loss=keras.losses.CosineSimilarity())
    rng = np.random.default_rng(66)
    x = rng.normal(size=(4, 8, 8, 3)).astype("float32")
    y = rng.normal(size=(4, 6)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
