# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


def build():
    keras.utils.set_random_seed(19)
    title, body = keras.Input((5,), dtype="int32", name="title"), keras.Input((8,), dtype="int32", name="body")
    t = layers.Embedding(25, 6, mask_zero=True, name="title_words")(title)
    t = layers.Bidirectional(layers.GRU(5), name="title_reader")(t)
    b = layers.Embedding(50, 6, mask_zero=True, name="body_words")(body)
    b = layers.LSTM(7, return_sequences=True, name="body_reader1")(b)
    b = layers.LSTM(7, name="body_reader2")(b)
    numbers = keras.Input((4,), name="numbers")
    h = layers.Concatenate(name="all")([t, b, layers.BatchNormalization(name="scale")(numbers)])
    h = layers.Dropout(0.2, name="drop")(layers.Dense(16, activation="relu", name="mix")(h))
    out = layers.Dense(3, activation="softmax", name="label")(h)
    model = keras.Model([title, body, numbers], out)
    model.compile("adam", loss="sparse_categorical_crossentropy")
    rng = np.random.default_rng(19)
    titles = rng.integers(1, 25, size=(12, 5)).astype("int32")
    titles[::2, 3:] = 0
    bodies = rng.integers(1, 50, size=(12, 8)).astype("int32")
    x = [titles, bodies, rng.normal(size=(12, 4)).astype("float32")]
    return {
        "kind": "keras",
        "model": model,
        "x": x,
        "y": rng.integers(0, 3, 12).astype("int32"),
        "fit_kwargs": {"batch_size": 12},
    }
