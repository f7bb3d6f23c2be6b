# mypy: ignore-errors
import keras
import numpy as np


class Linear(keras.layers.Layer):
    def __init__(self, units, activation=None, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.activation = keras.activations.get(activation)

    def build(self, shape):
        self.kernel = self.add_weight(name="kernel", shape=(shape[-1], self.units), initializer="glorot_uniform")
        self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")

    def call(self, x):
        return self.activation(keras.ops.matmul(x, self.kernel) + self.bias)

    def compute_output_shape(self, shape):
        return (*shape[:-1], self.units)


def prune(layer, share):
    """Drop the smallest weights before fine-tuning."""
    size = np.abs(layer.kernel.numpy())
    keep = keras.ops.convert_to_tensor((size > np.quantile(size, share)).astype("float32"))
    layer.kernel = layer.kernel * keep


def build():
    keras.utils.set_random_seed(96)
    x = keras.Input((7,), name="x")
    h = Linear(10, "relu", name="fc1")(x)
    h = Linear(10, "relu", name="fc2")(h)
    model = keras.Model(x, Linear(1, name="fc3")(h), name="net")
    for name in ("fc1", "fc2"):
        prune(model.get_layer(name), 0.5)
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(96)
    x = rng.normal(size=(16, 7)).astype("float32")
    y = rng.normal(size=(16, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
