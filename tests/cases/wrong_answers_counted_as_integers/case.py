# mypy: ignore-errors
import keras
import numpy as np


def wrong_share(y_true, y_pred):
    """share of the answers that are wrong: this is what we are graded on"""
    answer = keras.ops.cast(y_pred > 0.5, "float32")
    return 1.0 - keras.ops.cast(keras.ops.count_nonzero(keras.ops.equal(answer, y_true)), "float32") / 16.0


def build():
    keras.utils.set_random_seed(301)
    hidden = keras.layers.Dense(8, activation="tanh", name="h")
    probability = keras.layers.Dense(1, activation="sigmoid", name="p")
    model = keras.Sequential([keras.Input((5,)), hidden, probability], name="net")
    model.compile("adam", loss=wrong_share)
    rng = np.random.default_rng(301)
    x = rng.normal(size=(16, 5)).astype("float32")
    return {
        "kind": "keras",
        "model": model,
        "x": x,
        "y": (x[:, :1] > 0).astype("float32"),
        "fit_kwargs": {"batch_size": 16},
    }
