# mypy: ignore-errors
import keras
import numpy as np


def pixels(images):
    """To numbers between 0 and 1."""
    scaled = np.empty(images.shape, "float32")
    np.divide(images, 256.0, out=scaled, casting="unsafe")
    return scaled.astype("float32")


def build():
    keras.utils.set_random_seed(4)
    images = np.random.default_rng(4).integers(0, 256, size=(16, 6, 6, 1)).astype("uint8")
    model = keras.Sequential(
        [
            keras.Input((6, 6, 1)),
            keras.layers.Conv2D(4, 3, activation="relu", name="conv"),
            keras.layers.Flatten(),
            keras.layers.Dense(3, name="scores"),
        ],
        name="digits",
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = pixels(images), np.arange(16) % 3
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
