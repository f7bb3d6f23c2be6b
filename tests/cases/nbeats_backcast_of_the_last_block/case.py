# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


class Block(layers.Layer):
    def __init__(self, units, back, ahead, **kw):
        super().__init__(**kw)
        self.fc = [layers.Dense(units, activation="relu", name=f"fc{i}") for i in range(3)]
        self.theta_b, self.theta_f = (
            layers.Dense(4, use_bias=False, name="theta_b"),
            layers.Dense(4, use_bias=False, name="theta_f"),
        )
        self.backcast, self.forecast = layers.Dense(back, name="backcast"), layers.Dense(ahead, name="forecast")

    def call(self, x):
        for layer in self.fc:
            x = layer(x)
        return self.backcast(self.theta_b(x)), self.forecast(self.theta_f(x))


class NBeats(keras.Model):
    def __init__(self, back=12, ahead=4):
        super().__init__(name="nbeats")
        self.stacks = [[Block(12, back, ahead, name=f"s{s}b{b}") for b in range(2)] for s in range(2)]

    def call(self, x):
        total = 0.0
        for stack in self.stacks:
            for block in stack:
                back, ahead = block(x)
                x = x - back
                total += ahead
        return total


def build():
    keras.utils.set_random_seed(24)
    t = np.arange(60)
    series = np.sin(t / 4.0) + 0.1 * np.random.default_rng(24).normal(size=60)
    x = np.stack([series[i : i + 12] for i in range(32)]).astype("float32")
    y = np.stack([series[i + 12 : i + 16] for i in range(32)]).astype("float32")
    model = NBeats()
    model(x)
    model.compile("adam", loss="mae")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 32}}
