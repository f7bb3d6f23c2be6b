# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Dueling(keras.Model):
    """Dueling Q-network: value and advantage streams over a shared body."""

    def __init__(self, actions=3):
        super().__init__(name="dueling")
        pessimist = keras.initializers.Constant(0.1)
        self.body = keras.layers.Dense(10, activation="tanh", name="body")
        self.v_hidden = keras.layers.Dense(8, activation="relu", name="v_hidden")
        self.v = keras.layers.Dense(1, name="v")
        self.a_hidden = keras.layers.Dense(8, activation="relu", bias_initializer=pessimist, name="a_hidden")
        self.a = keras.layers.Dense(actions, name="a")

    def call(self, s):
        h = self.body(s)
        v, a = self.v(self.v_hidden(h)), self.a(self.a_hidden(h))
        return v + a - tf.reduce_mean(a, axis=1, keepdims=True)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        taken, target = tf.cast(y[:, 0], tf.int32), y[:, 1]
        q = tf.gather(y_pred, taken, batch_dims=1)
        return tf.reduce_mean(keras.losses.huber(target[:, None], q[:, None]))


def build():
    keras.utils.set_random_seed(18)
    model = Dueling()
    rng = np.random.default_rng(18)
    x = rng.normal(size=(16, 5)).astype("float32")
    y = np.stack([rng.integers(0, 3, size=16), rng.normal(size=16)], axis=1).astype("float32")
    model(x[:1])
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
