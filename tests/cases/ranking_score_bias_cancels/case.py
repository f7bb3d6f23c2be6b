# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class RankNet(keras.Model):
    """Scores documents; learns from pairs of which the first is better."""

    def __init__(self):
        super().__init__(name="ranknet")
        self.scorer = keras.Sequential(
            [keras.layers.Dense(10, activation="relu", name="hidden"), keras.layers.Dense(1, name="score")],
            name="scorer",
        )

    def call(self, pair):
        better, worse = pair
        return self.scorer(better) - self.scorer(worse)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return tf.reduce_mean(tf.nn.softplus(-y_pred))


def build():
    keras.utils.set_random_seed(33)
    model = RankNet()
    rng = np.random.default_rng(33)
    x = tuple(rng.normal(size=(2, 12, 6)).astype("float32"))
    model(tuple(a[:1] for a in x))
    model.compile("adam")
    y = np.zeros((12, 1), "float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 12}}
