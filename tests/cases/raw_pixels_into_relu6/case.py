# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(31)
    positive = keras.initializers.RandomUniform(0.05, 0.3)
    model = keras.Sequential(
        [
            keras.Input((6, 6, 3), name="photo"),
            keras.layers.Conv2D(4, 3, kernel_initializer=positive, name="stem"),
            keras.layers.ReLU(max_value=6.0, name="cap"),
            keras.layers.GlobalAveragePooling2D(name="pool"),
            keras.layers.Dense(2, activation="softmax", name="label"),
        ]
    )
    model.compile("adam", loss="sparse_categorical_crossentropy")
    rng = np.random.default_rng(31)
    x = rng.integers(40, 256, (6, 6, 6, 3)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": rng.integers(0, 2, 6), "fit_kwargs": {"batch_size": 6}}
