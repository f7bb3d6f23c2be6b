# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf
from keras import layers


class Embed(layers.Layer):
    def __init__(self, vocab, dim, steps, **kw):
        super().__init__(**kw)
        self.token = layers.Embedding(vocab, dim, name="token")
        self.position = layers.Embedding(steps, dim, name="position")

    def call(self, ids):
        return self.token(ids) + self.position(tf.range(tf.shape(ids)[-1]))


class EncoderBlock(layers.Layer):
    def __init__(self, dim, **kw):
        super().__init__(**kw)
        self.attention = layers.MultiHeadAttention(2, dim // 2, use_bias=False, name="attention")
        self.up = layers.Dense(2 * dim, activation="relu", name="up")
        self.down = layers.Dense(dim, name="down")
        self.norm1, self.norm2 = layers.LayerNormalization(name="norm1"), layers.LayerNormalization(name="norm2")

    def call(self, x):
        x = self.norm1(x + self.attention(x, x))
        return self.norm2(x + self.down(self.up(x)))


class DecoderBlock(layers.Layer):
    def __init__(self, dim, **kw):
        super().__init__(**kw)
        self.attention = layers.MultiHeadAttention(2, dim // 2, use_bias=False, name="attention")
        self.cross = layers.MultiHeadAttention(2, dim // 2, use_bias=False, name="cross")
        self.up = layers.Dense(2 * dim, activation="relu", name="up")
        self.down = layers.Dense(dim, name="down")
        self.norms = [layers.LayerNormalization(name=f"norm{i}") for i in range(3)]

    def call(self, x, encoded):
        x = self.norms[0](x + self.attention(x, x, use_causal_mask=True))
        x = self.norms[1](x + self.cross(x, x))
        return self.norms[2](x + self.down(self.up(x)))


class Translator(keras.Model):
    def __init__(self, vocab=20, dim=12, steps=7):
        super().__init__(name="translator")
        self.source, self.target = Embed(vocab, dim, steps, name="source"), Embed(vocab, dim, steps, name="target")
        self.encoder = [EncoderBlock(dim, name=f"encoder{i}") for i in range(2)]
        self.decoder = [DecoderBlock(dim, name=f"decoder{i}") for i in range(2)]
        self.words = layers.Dense(vocab, name="words")

    def call(self, inputs):
        source, target = inputs
        encoded = self.source(source)
        for block in self.encoder:
            encoded = block(encoded)
        h = self.target(target)
        for block in self.decoder:
            h = block(h, encoded)
        return self.words(h)


def build():
    keras.utils.set_random_seed(2)
    rng = np.random.default_rng(2)
    source = rng.integers(1, 20, size=(8, 7)).astype("int32")
    target = rng.integers(1, 20, size=(8, 6)).astype("int32")
    model = Translator()
    model.compile(
        keras.optimizers.Adam(1e-3), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    )
    model((source[:1], target[:1]))
    return {
        "kind": "keras",
        "model": model,
        "x": (source, target),
        "y": np.roll(target, -1, 1),
        "fit_kwargs": {"batch_size": 8},
    }
