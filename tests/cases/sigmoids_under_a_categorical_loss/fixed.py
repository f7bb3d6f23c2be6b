# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


def build():
    keras.utils.set_random_seed(41)
    model = keras.Sequential(
        [
            keras.Input((10,)),
            layers.Flatten(name="values"),
            layers.Dense(24, activation="relu", name="hidden"),
            layers.Dense(5, activation="softmax", name="classes"),
        ]
    )
    rng = np.random.default_rng(41)
    x = rng.normal(size=(64, 10)).astype("float32")
    labels = keras.utils.to_categorical((x @ rng.normal(size=(10, 5))).argmax(1), 5)
    model.compile("rmsprop", loss="categorical_crossentropy", metrics=["accuracy"])
    return {"kind": "keras", "model": model, "x": x, "y": labels, "fit_kwargs": {"batch_size": 32}}
