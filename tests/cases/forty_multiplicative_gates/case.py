# mypy: ignore-errors
import keras
import numpy as np


class Gate(keras.layers.Layer):
    """Multiplies the features by a learned gate in (0, 1), without a residual path."""

    def build(self, shape):
        self.logit = self.add_weight(name="logit", shape=(shape[-1],), initializer=keras.initializers.Constant(-1.5))

    def call(self, x):
        return x * keras.ops.sigmoid(self.logit)


def build():
    keras.utils.set_random_seed(42)
    x_in = keras.Input((6,), name="x")
    h = keras.layers.Dense(6, use_bias=False, name="first")(x_in)
    for i in range(20):
        h = Gate(name=f"gate{i:02d}")(h)
    out = keras.layers.Dense(1, name="last")(h)
    model = keras.Model(x_in, out)
    model.compile("sgd", loss="mse")
    rng = np.random.default_rng(42)
    x = rng.normal(size=(8, 6)).astype("float32")
    y = rng.normal(size=(8, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
