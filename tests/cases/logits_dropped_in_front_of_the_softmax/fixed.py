# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


def build():
    keras.utils.set_random_seed(44)
    model = keras.Sequential(
        [
            keras.Input((12,)),
            layers.Dense(50, activation="relu", name="hidden"),
            layers.Dropout(0.5, name="first"),
            layers.Dense(10, name="classes"),
            layers.Activation("softmax", name="probabilities"),
        ]
    )
    rng = np.random.default_rng(44)
    x = rng.normal(size=(80, 12)).astype("float32")
    labels = keras.utils.to_categorical((x @ rng.normal(size=(12, 10))).argmax(1), 10)
    model.compile("adam", loss="categorical_crossentropy", metrics=["accuracy"])
    return {"kind": "keras", "model": model, "x": x, "y": labels, "fit_kwargs": {"batch_size": 20}}
