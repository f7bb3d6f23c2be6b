# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class QuantActivation(keras.layers.Layer):
    """Quantisation-aware activation whose range is learned per channel."""

    def __init__(self, bits=8, limit=6.0, **kw):
        super().__init__(**kw)
        self.bits, self.limit = bits, limit

    def build(self, shape):
        n = shape[-1]
        self.low = self.add_weight(name="low", shape=(n,), initializer=keras.initializers.Constant(-self.limit))
        self.high = self.add_weight(name="high", shape=(n,), initializer=keras.initializers.Constant(self.limit))

    def call(self, x):
        return tf.quantization.fake_quant_with_min_max_vars_per_channel(x, self.low, self.high, num_bits=self.bits)


def build():
    keras.utils.set_random_seed(17)
    image = keras.Input((8, 8, 2), name="image")
    h = keras.layers.Conv2D(4, 3, name="conv1")(image)
    h = QuantActivation(name="quant1")(h)
    h = keras.layers.Conv2D(4, 3, activation="tanh", name="conv2")(h)
    h = QuantActivation(name="quant2")(h)
    out = keras.layers.Dense(3, name="label")(keras.layers.Flatten(name="flat")(h))
    model = keras.Model(image, out)
    model.compile("sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(17)
    x = rng.uniform(-1, 1, size=(4, 8, 8, 2)).astype("float32")
    y = rng.integers(0, 3, size=(4,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
