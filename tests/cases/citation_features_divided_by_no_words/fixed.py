# mypy: ignore-errors
import keras
import numpy as np


def share_of_each_word(counts):
    """Rows that sum to one."""
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)


def build():
    keras.utils.set_random_seed(32)
    rng = np.random.default_rng(32)
    counts = rng.poisson(0.8, size=(24, 6)).astype("float32") + np.eye(24, 6, dtype="float32")
    counts[17] = 0.0  # a paper that is cited and whose text is missing
    x = share_of_each_word(counts)
    y = rng.integers(0, 3, size=24)
    words = keras.Input((6,), name="words")
    h = keras.layers.Dense(5, activation="tanh", name="hidden")(words)
    topic = keras.layers.Dense(3, name="topic")(h)
    model = keras.Model(words, topic)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 24}}
