# mypy: ignore-errors
import keras
import numpy as np


class TernaryConv(keras.layers.Layer):
    """Convolution whose weights are -1, 0 or 1 times a learned scale per filter."""

    def __init__(self, filters, size, **kwargs):
        super().__init__(**kwargs)
        self.filters, self.size = filters, size

    def build(self, shape):
        self.kernel = self.add_weight(
            name="kernel", shape=(self.size, self.size, shape[-1], self.filters), initializer="he_normal"
        )
        self.scale = self.add_weight(name="scale", shape=(self.filters,), initializer="ones")

    def quantised(self):
        return keras.ops.round(keras.ops.tanh(2.0 * self.kernel))

    def call(self, x):
        return keras.ops.conv(x, self.quantised() * self.scale, padding="same")


def build():
    keras.utils.set_random_seed(11)
    image = keras.Input((8, 8, 3), name="image")
    h = keras.layers.Conv2D(6, 3, padding="same", activation="relu", name="stem")(image)
    h = TernaryConv(8, 3, name="t1")(h)
    h = keras.layers.BatchNormalization(name="bn1")(h)
    h = keras.layers.ReLU(name="relu1")(h)
    h = keras.layers.MaxPooling2D(name="pool")(h)
    h = TernaryConv(8, 3, name="t2")(h)
    h = keras.layers.GlobalAveragePooling2D(name="gap")(h)
    model = keras.Model(image, keras.layers.Dense(3, activation="softmax", name="classes")(h))
    model.compile("adam", loss="sparse_categorical_crossentropy")
    rng = np.random.default_rng(11)
    x = rng.normal(size=(8, 8, 8, 3)).astype("float32")
    y = rng.integers(0, 3, size=(8,))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
