# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class SimCLR(keras.Model):
    """Encoder with a projection head (pre-training) and a linear probe (evaluation)."""

    def __init__(self, phase):
        super().__init__(name="simclr")
        self.phase = phase
        self.encoder = keras.Sequential(
            [keras.layers.Dense(16, activation="relu", name="e1"), keras.layers.Dense(8, name="e2")], name="encoder"
        )
        self.projector = keras.Sequential(
            [keras.layers.Dense(8, activation="relu", name="p1"), keras.layers.Dense(4, name="p2")], name="projector"
        )
        self.probe = keras.layers.Dense(3, name="probe")

    def build(self, shape):
        self.encoder.build(shape)
        self.projector.build((None, 8))
        self.probe.build((None, 8))
        self.built = True

    def call(self, x):
        h = self.encoder(x)
        if self.phase == "pretrain":
            return tf.math.l2_normalize(self.projector(h), axis=1)
        return self.probe(h)


def build():
    keras.utils.set_random_seed(3)
    model = SimCLR("finetune")
    model.build((None, 6))
    model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(3)
    x = rng.normal(size=(16, 6)).astype("float32")
    y = rng.integers(0, 3, size=(16,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
