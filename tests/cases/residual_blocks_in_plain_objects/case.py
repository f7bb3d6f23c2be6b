# mypy: ignore-errors
import keras
import numpy as np


class Block:
    """A residual block, as a plain object for brevity."""

    def __init__(self, units, name):
        self.inner = keras.layers.Dense(2 * units, activation="gelu", name=f"{name}_inner")
        self.outer = keras.layers.Dense(units, name=f"{name}_outer")

    def build(self, shape):
        self.inner.build(shape)
        self.outer.build((None, self.inner.units))

    def __call__(self, x):
        return x + self.outer(self.inner(x))


class Mixer(keras.Model):
    def __init__(self):
        super().__init__(name="mixer")
        self.embed = keras.layers.Dense(6, name="embed")
        self.blocks = [Block(6, f"block{i}") for i in range(3)]
        self.norm = keras.layers.LayerNormalization(name="norm")
        self.head = keras.layers.Dense(1, name="head")

    def build(self, shape):
        self.embed.build(shape)
        for block in self.blocks:
            block.build((None, 6))
        self.norm.build((None, 6))
        self.head.build((None, 6))

    def call(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def build():
    keras.utils.set_random_seed(100)
    model = Mixer()
    rng = np.random.default_rng(100)
    x = rng.normal(size=(16, 4)).astype("float32")
    y = rng.normal(size=(16, 1)).astype("float32")
    model(x[:1])
    model.compile(keras.optimizers.AdamW(1e-3), loss="mse")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
