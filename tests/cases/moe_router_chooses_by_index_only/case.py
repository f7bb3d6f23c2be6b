# mypy: ignore-errors
import keras
import numpy as np


class Experts(keras.layers.Layer):
    """Two of four experts per token, averaged."""

    def __init__(self, experts=4, units=6, k=2, **kwargs):
        super().__init__(**kwargs)
        self.k = k
        self.router = keras.layers.Dense(experts, use_bias=False, name="router")
        self.experts = [keras.layers.Dense(units, activation="gelu", name=f"expert{i}") for i in range(experts)]

    def build(self, shape):
        self.router.build(shape)
        for expert in self.experts:
            expert.build(shape)

    def call(self, x):
        _, chosen = keras.ops.top_k(self.router(x), self.k)
        everyone = keras.ops.stack([expert(x) for expert in self.experts], axis=-2)
        picked = keras.ops.take_along_axis(everyone, chosen[..., None], axis=-2)
        return keras.ops.mean(picked, axis=-2)


def build():
    keras.utils.set_random_seed(20)
    tokens = keras.Input((5, 6), name="tokens")
    h = keras.layers.Dense(6, name="embed")(tokens)
    h = keras.layers.Add(name="residual")([h, Experts(name="moe")(h)])
    h = keras.layers.LayerNormalization(name="norm")(h)
    model = keras.Model(tokens, keras.layers.Dense(3, name="out")(h))
    model.compile(keras.optimizers.AdamW(1e-3), loss="mse")
    rng = np.random.default_rng(20)
    x = rng.normal(size=(16, 5, 6)).astype("float32")
    y = rng.normal(size=(16, 5, 3)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
