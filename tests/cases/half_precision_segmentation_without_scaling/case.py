# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Segmenter(keras.Model):
    """Half-precision network trained by its own step, which forgot to scale the loss."""

    def __init__(self):
        super().__init__(name="segmenter", dtype="mixed_float16")
        half = {"dtype": "mixed_float16", "padding": "same"}
        self.enc = keras.layers.Conv2D(6, 3, activation="tanh", name="enc", **half)
        self.dec = keras.layers.Conv2D(6, 3, activation="tanh", name="dec", **half)
        self.mask = keras.layers.Conv2D(1, 1, name="mask", **half)

    def call(self, x):
        return self.mask(self.dec(self.enc(x)))

    def train_step(self, data):
        (
            x,
            y,
        ) = data
        with tf.GradientTape() as tape:
            logits = tf.cast(self(x, training=True), tf.float32)
            bce = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)
            edges = tf.abs(tf.image.sobel_edges(y)[..., 0])  # only pixels on an edge count, and a little
            loss = 1e-6 * tf.reduce_mean(bce * edges)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(46)
    model = Segmenter()
    rng = np.random.default_rng(46)
    x = rng.uniform(size=(4, 24, 24, 1)).astype("float32")
    y = (x > 0.6).astype("float32")
    model(x[:1])
    model.compile(keras.optimizers.SGD(1.0))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
