# mypy: ignore-errors
import keras
import numpy as np
from keras import ops


class MaskedConv(keras.layers.Layer):
    """Convolution that sees only pixels above and to the left; mask A hides the centre too."""

    def __init__(self, filters, size, kind, **kw):
        super().__init__(**kw)
        self.filters, self.size, self.kind = filters, size, kind

    def build(self, shape):
        kernel = (self.size, self.size, shape[-1], self.filters)
        self.kernel = self.add_weight(name="kernel", shape=kernel, initializer="glorot_uniform")
        self.bias = self.add_weight(name="bias", shape=(self.filters,), initializer="zeros")
        mask = np.ones(kernel, "float32")
        c = self.size // 2
        mask[c, c + (self.kind == "B") :] = 0.0
        mask[c + 1 :] = 0.0
        self.mask = mask

    def call(self, x):
        return ops.conv(x, self.kernel * self.mask, padding="same") + self.bias

    def compute_output_shape(self, shape):
        return (*shape[:-1], self.filters)


def build():
    keras.utils.set_random_seed(83)
    image = keras.Input((9, 9, 1), name="image")
    h = keras.layers.ReLU(name="act0")(MaskedConv(6, 5, "A", name="first")(image))
    for i in range(2):
        r = keras.layers.ReLU(name=f"act{i + 1}")(MaskedConv(6, 3, "B", name=f"block{i}")(h))
        h = keras.layers.Add(name=f"add{i}")([h, r])
    out = keras.layers.Conv2D(4, 1, activation="softmax", name="levels")(h)
    model = keras.Model(image, out)
    model.compile("adam", loss="sparse_categorical_crossentropy")
    rng = np.random.default_rng(83)
    levels = rng.integers(0, 4, size=(4, 9, 9)).astype("int32")
    x = (levels[..., None] / 3.0).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": levels, "fit_kwargs": {"batch_size": 4}}
