# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(7)
    clip = keras.Input((1, 6, 6, 2), name="clip")
    h = keras.layers.ConvLSTM2D(4, 3, padding="same", return_sequences=True, name="motion")(clip)
    h = keras.layers.TimeDistributed(keras.layers.Conv2D(3, 1, activation="relu", name="mix"), name="per_frame")(h)
    h = keras.layers.GlobalAveragePooling3D(name="pool")(h)
    out = keras.layers.Dense(2, activation="softmax", name="action")(h)
    model = keras.Model(clip, out)
    model.compile("adam", loss="categorical_crossentropy")
    rng = np.random.default_rng(7)
    x = rng.normal(size=(4, 1, 6, 6, 2)).astype("float32")
    y = np.eye(2, dtype="float32")[rng.integers(0, 2, size=(4,))]
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
