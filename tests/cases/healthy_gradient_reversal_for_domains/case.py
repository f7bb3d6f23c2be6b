# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Reverse(keras.layers.Layer):
    def __init__(self, strength, **kw):
        super().__init__(**kw)
        self.strength = strength

    def call(self, x):
        @tf.custom_gradient
        def flip(x):
            def grad(dy):
                return -self.strength * dy

            return tf.identity(x), grad

        return flip(x)


def build():
    keras.utils.set_random_seed(76)
    image = keras.Input((10, 10, 1), name="image")
    h = keras.layers.Conv2D(6, 3, activation="relu", name="conv")(image)
    h = keras.layers.GlobalMaxPooling2D(name="pool")(h)
    h = keras.layers.Dense(8, activation="relu", bias_initializer="ones", name="features")(h)
    digit = keras.layers.Dense(4, activation="softmax", name="digit")(h)
    domain = keras.layers.Dense(6, activation="relu", name="domain_hidden")(Reverse(0.3, name="reverse")(h))
    domain = keras.layers.Dense(1, activation="sigmoid", name="domain")(domain)
    model = keras.Model(image, {"digit": digit, "domain": domain})
    model.compile("adam", loss={"digit": "sparse_categorical_crossentropy", "domain": "binary_crossentropy"})
    rng = np.random.default_rng(76)
    x = rng.normal(size=(8, 10, 10, 1)).astype("float32")
    y = {"digit": rng.integers(0, 4, size=(8,)), "domain": rng.integers(0, 2, size=(8, 1)).astype("float32")}
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
