# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


def build():
    keras.utils.set_random_seed(61)
    model = keras.Sequential(
        [
            keras.Input((20,)),
            layers.Embedding(100, 8, name="words"),
            layers.LSTM(12, name="sequence"),
            layers.Dense(1, activation="sigmoid", name="answer"),
        ]
    )
    words = np.random.default_rng(61).integers(0, 100, (64, 20))
    x = words.astype("float32")
    labels = (words[:, :5].sum(1) > 250).astype("float32")
    model.compile("rmsprop", loss="binary_crossentropy", metrics=["accuracy"])
    return {"kind": "keras", "model": model, "x": x, "y": labels, "fit_kwargs": {"batch_size": 32}}
