# mypy: ignore-errors
import keras
import numpy as np


class PointScore(keras.layers.Layer):
    """Score card: whole points per feature, so that people can add them up."""

    def build(self, shape):
        self.points = self.add_weight(
            name="points",
            shape=(shape[-1], 1),
            dtype="int32",
            initializer=keras.initializers.Constant(2),
            trainable=True,
        )
        self.offset = self.add_weight(name="offset", shape=(1,), initializer="zeros")

    def call(self, x):
        return keras.ops.matmul(x, keras.ops.cast(self.points, "float32")) + self.offset


def build():
    keras.utils.set_random_seed(53)
    findings = keras.Input((5,), name="findings")
    h = keras.layers.Dense(6, activation="sigmoid", name="present")(findings)
    score = PointScore(name="card")(h)
    model = keras.Model(findings, keras.layers.Activation("sigmoid", name="risk")(score))
    model.compile(keras.optimizers.SGD(0.1), loss="binary_crossentropy", metrics=["accuracy"])
    rng = np.random.default_rng(53)
    x = rng.normal(size=(16, 5)).astype("float32")
    y = rng.integers(0, 2, size=(16, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
