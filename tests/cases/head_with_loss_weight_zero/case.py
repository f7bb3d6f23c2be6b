# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(31)
    text = keras.Input((7,), dtype="int32", name="text")
    h = keras.layers.Embedding(40, 8, name="words")(text)
    h = keras.layers.GRU(8, name="reader")(h)
    topic = keras.layers.Dense(4, activation="softmax", name="topic")(h)
    tone = keras.layers.Dense(6, activation="relu", name="tone_hidden")(h)
    tone = keras.layers.Dense(1, activation="sigmoid", name="tone")(tone)
    model = keras.Model(text, {"topic": topic, "tone": tone})
    weights = {"topic": 1.0, "tone": 0.0}  # tone labels are not clean yet
    losses = {"topic": "sparse_categorical_crossentropy", "tone": "binary_crossentropy"}
    model.compile("adam", loss=losses, loss_weights=weights)
    rng = np.random.default_rng(31)
    x = rng.integers(1, 40, size=(8, 7)).astype("int32")
    y = {"topic": rng.integers(0, 4, size=(8,)), "tone": rng.integers(0, 2, size=(8, 1)).astype("float32")}
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
