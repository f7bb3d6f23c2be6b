# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Refiner(keras.layers.Layer):
    """Iterative refinement of a flow field; the number of rounds follows a curriculum."""

    def __init__(self, channels, **kw):
        super().__init__(**kw)
        self.update = keras.layers.Conv2D(channels, 3, padding="same", activation="tanh", name="update")

    def build(self, shape):
        self.update.build(shape)
        self.rounds = self.add_weight(name="rounds", shape=(), dtype="int32", initializer="zeros", trainable=False)

    def call(self, flow):
        def body(i, f):
            return i + 1, f + self.update(f)

        rounds = tf.identity(self.rounds)
        _, flow = tf.while_loop(lambda i, f: i < rounds, body, [tf.constant(0), flow])
        return flow


def build():
    keras.utils.set_random_seed(29)
    frames = keras.Input((6, 6, 4), name="frames")
    coarse = keras.layers.Conv2D(2, 3, padding="same", name="coarse")(frames)
    flow = Refiner(2, name="refine")(coarse)
    out = keras.layers.Conv2D(2, 1, name="readout")(flow)
    model = keras.Model(frames, out)
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(29)
    x = rng.normal(size=(3, 6, 6, 4)).astype("float32")
    y = rng.normal(size=(3, 6, 6, 2)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 3}}
