# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf
from keras import layers


class SelfAttention(layers.Layer):
    def __init__(self, dim, heads, **kw):
        super().__init__(**kw)
        self.heads, self.size = heads, dim // heads
        self.qkv = layers.Dense(3 * dim, use_bias=False, name="qkv")
        self.out = layers.Dense(dim, name="out")

    def call(self, x, mask):
        n, t = tf.shape(x)[0], tf.shape(x)[1]
        qkv = tf.transpose(tf.reshape(self.qkv(x), (n, t, 3, self.heads, self.size)), (2, 0, 3, 1, 4))
        scores = tf.matmul(qkv[0], qkv[1], transpose_b=True) / float(np.sqrt(self.size))
        mask = tf.cast(mask, scores.dtype)[:, None, None, :]
        scores += (1.0 - mask) * tf.cast(tf.constant(-1e9), scores.dtype)
        h = tf.matmul(tf.nn.softmax(scores), qkv[2])
        return self.out(tf.reshape(tf.transpose(h, (0, 2, 1, 3)), (n, t, self.heads * self.size)))


class Encoder(keras.Model):
    def __init__(self):
        super().__init__(name="bert")
        self.tokens = layers.Embedding(40, 16, name="tokens")
        self.attention = [SelfAttention(16, 2, name=f"attention{i}") for i in range(2)]
        self.up = [layers.Dense(32, activation="gelu", name=f"up{i}") for i in range(2)]
        self.down = [layers.Dense(16, name=f"down{i}") for i in range(2)]
        self.norm = [layers.LayerNormalization(name=f"norm{i}") for i in range(4)]
        self.label = layers.Dense(2, dtype="float32", name="label")

    def call(self, ids):
        mask = tf.not_equal(ids, 0)
        h = self.tokens(ids)
        for i in range(2):
            h = self.norm[2 * i](h + self.attention[i](h, mask))
            h = self.norm[2 * i + 1](h + self.down[i](self.up[i](h)))
        return self.label(h[:, 0])


def build():
    keras.utils.set_random_seed(18)
    before = keras.mixed_precision.dtype_policy()
    keras.mixed_precision.set_dtype_policy("mixed_float16")
    try:
        model = Encoder()
        rng = np.random.default_rng(18)
        ids = rng.integers(1, 40, size=(8, 10)).astype("int32")
        for row, length in enumerate((10, 7, 5, 9, 10, 6, 8, 4)):
            ids[row, length:] = 0
        model(ids)
        model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    finally:
        keras.mixed_precision.set_dtype_policy(before)
    return {
        "kind": "keras",
        "model": model,
        "x": ids,
        "y": rng.integers(0, 2, 8).astype("int32"),
        "fit_kwargs": {"batch_size": 8},
    }
