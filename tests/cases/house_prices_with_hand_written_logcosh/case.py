# mypy: ignore-errors
"""Two targets of a house: the price in thousands, and the number of rooms. Log-cosh is written out by hand."""

import keras
import numpy as np


def log_cosh(y_true, y_pred):
    error = y_pred - keras.ops.cast(y_true, y_pred.dtype)
    return keras.ops.mean(keras.ops.log(keras.ops.cosh(error)), axis=-1)


class FeatureCross(keras.layers.Layer):
    """x0 * (W x + b) + x, a deep-and-cross layer"""

    def build(self, shapes):
        d = shapes[0][-1]
        self.w = self.add_weight(name="w", shape=(d, d), initializer="glorot_uniform")
        self.b = self.add_weight(name="b", shape=(d,), initializer="zeros")

    def call(self, pair):
        x0, x = pair
        return x0 * (keras.ops.matmul(x, self.w) + self.b) + x

    def compute_output_shape(self, shapes):
        return shapes[0]


def tower(numeric, district):
    embedded = keras.layers.Flatten()(keras.layers.Embedding(6, 3, name="district_table")(district))
    x0 = keras.layers.Concatenate(name="join")([numeric, embedded])
    x = FeatureCross(name="cross")([x0, x0])
    return keras.layers.Dense(8, activation="relu", name="hidden")(x)


def build():
    keras.utils.set_random_seed(8524)
    numeric = keras.Input((5,), name="numeric")
    district = keras.Input((1,), dtype="int32", name="district")
    trunk = tower(numeric, district)
    price = keras.layers.Dense(1, name="price")(trunk)
    rooms = keras.layers.Dense(1, activation="softplus", name="rooms")(trunk)
    model = keras.Model({"numeric": numeric, "district": district}, {"price": price, "rooms": rooms})
    model.compile("adam", loss={"price": log_cosh, "rooms": log_cosh}, loss_weights={"price": 1.0, "rooms": 0.5})
    rng = np.random.default_rng(5)
    x = {"numeric": rng.normal(size=(12, 5)).astype("float32"), "district": rng.integers(0, 6, (12, 1)).astype("int32")}
    y = {
        "price": rng.uniform(80, 900, size=(12, 1)).astype("float32"),
        "rooms": rng.integers(1, 7, (12, 1)).astype("float32"),
    }
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 12}}
