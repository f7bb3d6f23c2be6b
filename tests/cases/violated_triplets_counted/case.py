# mypy: ignore-errors
import keras
import numpy as np


class MarginViolations(keras.losses.Loss):
    """Share of the triplets in which the negative lies closer than the positive plus a margin."""

    def distances(self, embedding):
        anchor, positive, negative = keras.ops.split(embedding, 3, axis=-1)
        near = keras.ops.sum(keras.ops.square(anchor - positive), axis=-1)
        far = keras.ops.sum(keras.ops.square(anchor - negative), axis=-1)
        return near, far

    def call(self, y_true, y_pred):
        near, far = self.distances(y_pred)
        violation = keras.ops.relu(near - far + 0.5)
        count = keras.ops.count_nonzero(violation, axis=-1)
        return keras.ops.cast(count, "float32") / keras.ops.cast(keras.ops.shape(y_pred)[0], "float32")


def build():
    keras.utils.set_random_seed(32)
    encoder = keras.Sequential(
        [
            keras.Input((9,)),
            keras.layers.Dense(12, activation="relu", name="hidden"),
            keras.layers.Dense(4, name="embedding"),
        ],
        name="encoder",
    )
    inputs = [keras.Input((9,), name=name) for name in ("anchor", "positive", "negative")]
    outputs = keras.layers.Concatenate(name="triplet")([encoder(i) for i in inputs])
    model = keras.Model(inputs, outputs)
    model.compile("adam", loss=MarginViolations())
    rng = np.random.default_rng(32)
    x = tuple(rng.normal(size=(16, 9)).astype("float32") for _ in range(3))
    y = np.zeros((16, 1), "float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
