# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class HardestTriplet(keras.losses.Loss):
    """Triplet loss on the hardest pairs of the batch: indices choose, gathered embeddings learn."""

    def __init__(self, margin=0.3):
        super().__init__(name="hardest_triplet", reduction=None)
        self.margin = margin

    def call(self, label, z):
        z = tf.math.l2_normalize(z, axis=1)
        distance = 2.0 - 2.0 * tf.matmul(z, z, transpose_b=True)
        same = tf.equal(label, tf.transpose(label))
        far = tf.argmax(tf.where(same, distance, -1.0), axis=1)
        near = tf.argmin(tf.where(same, 1e3, distance), axis=1)
        positive = tf.reduce_sum(tf.square(z - tf.gather(z, far)), axis=1)
        negative = tf.reduce_sum(tf.square(z - tf.gather(z, near)), axis=1)
        return tf.nn.softplus(positive - negative + self.margin)


def build():
    keras.utils.set_random_seed(141)
    face = keras.Input((10,), name="face")
    h = keras.layers.Dense(16, activation="relu", name="hidden")(face)
    model = keras.Model(face, keras.layers.Dense(4, name="embedding")(h))
    model.compile("adam", loss=HardestTriplet())
    rng = np.random.default_rng(141)
    x = rng.normal(size=(12, 10)).astype("float32")
    y = (np.arange(12) % 3)[:, None].astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 12}}
