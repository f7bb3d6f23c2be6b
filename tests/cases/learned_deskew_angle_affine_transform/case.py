# mypy: ignore-errors
import keras
import numpy as np


class Deskew(keras.layers.Layer):
    """Turns every page upright by an angle that a small network estimates."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.look = keras.layers.Dense(8, activation="tanh", name="look")
        self.angle = keras.layers.Dense(1, name="angle")

    def build(self, shape):
        self.look.build((None, shape[1] * shape[2] * shape[3]))
        self.angle.build((None, 8))

    def matrix(self, angle):
        c, s, o = keras.ops.cos(angle), keras.ops.sin(angle), keras.ops.zeros_like(angle)
        return keras.ops.concatenate([c, -s, o, s, c, o, o, o], axis=-1)

    def call(self, page):
        flat = keras.ops.reshape(page, (keras.ops.shape(page)[0], -1))
        angle = 0.2 * self.angle(self.look(flat))
        return keras.ops.image.affine_transform(page, self.matrix(angle), interpolation="bilinear")


def build():
    keras.utils.set_random_seed(51)
    page = keras.Input((9, 9, 1), name="page")
    h = keras.layers.Conv2D(2, 3, padding="same", name="clean")(page)
    h = Deskew(name="deskew")(h)
    h = keras.layers.Conv2D(4, 3, activation="relu", name="read")(h)
    h = keras.layers.GlobalMaxPooling2D(name="pool")(h)
    model = keras.Model(page, keras.layers.Dense(3, activation="softmax", name="letter")(h))
    model.compile("adam", loss="sparse_categorical_crossentropy")
    rng = np.random.default_rng(51)
    x = rng.uniform(size=(6, 9, 9, 1)).astype("float32")
    y = rng.integers(0, 3, size=(6,))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
