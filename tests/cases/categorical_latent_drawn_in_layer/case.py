# mypy: ignore-errors
import keras
import numpy as np


class CategoricalLatent(keras.layers.Layer):
    """Draws a code word per position from the encoder's logits."""

    def __init__(self, words, width, **kwargs):
        super().__init__(**kwargs)
        self.words = words
        self.book = keras.layers.Embedding(words, width, name="book")
        self.seeds = keras.random.SeedGenerator(5)

    def build(self, shape):
        self.book.build(None)

    def call(self, logits):
        flat = keras.ops.reshape(logits, (-1, self.words))
        word = keras.random.categorical(flat, 1, seed=self.seeds)
        word = keras.ops.reshape(word, keras.ops.shape(logits)[:-1])
        return self.book(word)


def build():
    keras.utils.set_random_seed(35)
    signal = keras.Input((12, 2), name="signal")
    h = keras.layers.Conv1D(8, 3, strides=2, padding="same", activation="relu", name="enc1")(signal)
    logits = keras.layers.Conv1D(5, 3, padding="same", name="enc2")(h)
    code = CategoricalLatent(5, 4, name="latent")(logits)
    h = keras.layers.Conv1DTranspose(8, 4, strides=2, padding="same", activation="relu", name="dec1")(code)
    model = keras.Model(signal, keras.layers.Conv1D(2, 3, padding="same", name="dec2")(h), name="dvae")
    model.compile("adam", loss="mae")
    rng = np.random.default_rng(35)
    x = rng.normal(size=(8, 12, 2)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": x, "fit_kwargs": {"batch_size": 8}}
