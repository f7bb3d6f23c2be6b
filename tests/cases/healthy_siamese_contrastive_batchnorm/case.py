# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Siamese(keras.Model):
    """Two views through one trunk; distance with an epsilon; heads weighted unevenly."""

    def __init__(self):
        super().__init__(name="siamese")
        layers = [
            keras.layers.Dense(12, use_bias=False, name="fc1"),
            keras.layers.BatchNormalization(name="bn"),
            keras.layers.Activation("relu", name="act"),
            keras.layers.Dense(4, name="fc2"),
        ]
        self.trunk = keras.Sequential(layers, name="trunk")
        self.label = keras.layers.Dense(3, name="label")

    def call(self, views, training=False):
        a, b = (self.trunk(v, training=training) for v in views)
        return a, b, self.label(a)

    def train_step(self, data):
        views, (same, label) = data
        with tf.GradientTape() as tape:
            a, b, logits = self(views, training=True)
            distance = tf.sqrt(tf.reduce_sum(tf.square(a - b), axis=1) + 1e-9)
            contrast = same * tf.square(distance) + (1.0 - same) * tf.square(tf.maximum(1.0 - distance, 0.0))
            entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits)
            loss = tf.reduce_mean(contrast) + 0.01 * tf.reduce_mean(entropy)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(89)
    model = Siamese()
    rng = np.random.default_rng(89)
    a = rng.normal(size=(10, 7)).astype("float32")
    b = rng.normal(size=(10, 7)).astype("float32")
    b[0] = a[0]  # an identical pair
    same = rng.integers(0, 2, size=(10,)).astype("float32")
    same[1:3] = 1.0
    label = rng.integers(0, 3, size=(10,)).astype("int32")
    model((a[:2], b[:2]))
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": (a, b), "y": (same, label), "fit_kwargs": {"batch_size": 10}}
