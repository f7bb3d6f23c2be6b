# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Distiller(keras.Model):
    """A student learns from labels and from a frozen teacher; agreement is logged by argmax."""

    def __init__(self):
        super().__init__(name="distiller")
        self.teacher = keras.Sequential(
            [keras.Input((7,)), keras.layers.Dense(16, activation="relu", name="t1"), keras.layers.Dense(3, name="t2")],
            name="teacher",
        )
        self.student = keras.Sequential(
            [keras.Input((7,)), keras.layers.Dense(6, activation="relu", name="s1"), keras.layers.Dense(3, name="s2")],
            name="student",
        )
        self.teacher.trainable = False
        self.agreement = keras.metrics.Mean(name="agreement")

    def call(self, x):
        return self.student(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        soft = tf.nn.softmax(self.teacher(x, training=False) / 3.0)
        hard = keras.losses.sparse_categorical_crossentropy(y, y_pred, from_logits=True)
        kl = keras.losses.kl_divergence(soft, tf.nn.softmax(y_pred / 3.0))
        same = tf.argmax(y_pred, axis=-1) == tf.argmax(soft, axis=-1)
        self.agreement.update_state(tf.cast(same, tf.float32))
        return tf.reduce_mean(0.3 * hard + 0.7 * 9.0 * kl)


def build():
    keras.utils.set_random_seed(135)
    model = Distiller()
    rng = np.random.default_rng(135)
    x = rng.normal(size=(16, 7)).astype("float32")
    y = rng.integers(0, 3, size=(16,))
    model(x[:1])
    model.compile("adam", metrics=["accuracy"])
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
