# mypy: ignore-errors
import keras
import numpy as np


class StableAttention(keras.layers.Layer):
    """Self-attention with the maximum of the scores subtracted first, for numerical stability."""

    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.width = width
        self.query = keras.layers.Dense(width, use_bias=False, name="query")
        self.key = keras.layers.Dense(width, use_bias=False, name="key")
        self.value = keras.layers.Dense(width, use_bias=False, name="value")

    def build(self, shape):
        for layer in (self.query, self.key, self.value):
            layer.build(shape)

    def shifted(self, scores):
        return keras.ops.stop_gradient(scores - keras.ops.max(scores, axis=-1, keepdims=True))

    def weights_of(self, x):
        scores = keras.ops.einsum("bqd,bkd->bqk", self.query(x), self.key(x)) / self.width**0.5
        exponentials = keras.ops.exp(self.shifted(scores))
        return exponentials / keras.ops.sum(exponentials, axis=-1, keepdims=True)

    def call(self, x):
        return keras.ops.matmul(self.weights_of(x), self.value(x))


def build():
    keras.utils.set_random_seed(120)
    patches = keras.Input((6, 5), name="patches")
    h = keras.layers.Dense(8, name="embed")(patches)
    for i in range(2):
        a = StableAttention(8, name=f"attention{i}")(keras.layers.LayerNormalization(name=f"before{i}")(h))
        h = keras.layers.Add(name=f"add{i}")([h, a])
    h = keras.layers.GlobalAveragePooling1D(name="pool")(h)
    model = keras.Model(patches, keras.layers.Dense(3, activation="softmax", name="classes")(h))
    model.compile(keras.optimizers.AdamW(1e-3), loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.1))
    rng = np.random.default_rng(120)
    x = rng.normal(size=(8, 6, 5)).astype("float32")
    y = keras.utils.to_categorical(rng.integers(0, 3, size=(8,)), 3)
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
