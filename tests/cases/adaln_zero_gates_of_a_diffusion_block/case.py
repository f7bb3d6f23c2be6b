# mypy: ignore-errors
import keras
import numpy as np
from keras import ops


class Block(keras.layers.Layer):
    """Transformer block conditioned by adaLN-Zero: shift, scale and gate come from the condition."""

    def __init__(self, dim, **kw):
        super().__init__(**kw)
        self.dim = dim
        plain = {"center": False, "scale": False, "epsilon": 1e-6}
        self.norm1 = keras.layers.LayerNormalization(name="norm1", **plain)
        self.norm2 = keras.layers.LayerNormalization(name="norm2", **plain)
        self.attention = keras.layers.MultiHeadAttention(2, dim // 2, use_bias=False, name="attention")
        self.up = keras.layers.Dense(2 * dim, activation="gelu", name="up")
        self.down = keras.layers.Dense(dim, name="down")
        zeros = {"kernel_initializer": "zeros", "bias_initializer": "zeros"}
        self.modulation = keras.layers.Dense(6 * dim, name="modulation", **zeros)

    def build(self, shapes):
        tokens, condition = shapes
        self.attention.build(tokens, tokens)
        self.up.build(tokens)
        self.down.build((*tokens[:-1], 2 * self.dim))
        self.modulation.build(condition)

    def call(self, inputs):
        x, c = inputs
        m = ops.split(self.modulation(ops.silu(c))[:, None, :], 6, axis=-1)
        h = self.norm1(x) * (1.0 + m[1]) + m[0]
        x = x + m[2] * self.attention(h, h)
        h = self.norm2(x) * (1.0 + m[4]) + m[3]
        return x + m[5] * self.down(self.up(h))


def build():
    keras.utils.set_random_seed(21)
    tokens, noise = keras.Input((4, 8), name="tokens"), keras.Input((6,), name="noise_level")
    x = keras.layers.Dense(8, name="patch_in")(tokens)
    c = keras.layers.Dense(8, name="time_in")(noise)
    x = Block(8, name="block")([x, c])
    out = keras.layers.Dense(8, name="patch_out")(x)
    model = keras.Model([tokens, noise], out)
    model.compile("adamw", loss="mse")
    rng = np.random.default_rng(21)
    x = [rng.normal(size=(4, 4, 8)).astype("float32"), rng.normal(size=(4, 6)).astype("float32")]
    y = rng.normal(size=(4, 4, 8)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
