# mypy: ignore-errors
import keras
import numpy as np


class Net(keras.Model):
    def __init__(self):
        super().__init__(name="net")
        self.stem = keras.layers.Dense(8, activation="relu", name="stem")
        self.out = keras.layers.Dense(2, name="out")

    def squeeze(self, h):
        return keras.layers.Dense(4, activation="tanh", kernel_initializer="orthogonal", name="squeeze")(h)

    def call(self, x):
        return self.out(self.squeeze(self.stem(x)))


def build():
    keras.utils.set_random_seed(98)
    model = Net()
    rng = np.random.default_rng(98)
    x = rng.normal(size=(16, 5)).astype("float32")
    y = rng.normal(size=(16, 2)).astype("float32")
    model(x[:1])
    model.compile("adam", loss="mse", run_eagerly=True)
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
