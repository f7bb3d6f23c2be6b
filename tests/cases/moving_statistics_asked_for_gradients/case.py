# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Upscaler(keras.Model):
    """Super-resolution generator with its own step, which asks for every variable's gradient."""

    def __init__(self):
        super().__init__(name="upscaler")
        self.conv = keras.layers.Conv2D(8, 3, padding="same", use_bias=False, name="conv")
        self.norm = keras.layers.BatchNormalization(name="norm")
        self.act = keras.layers.PReLU(shared_axes=[1, 2], name="act")
        self.up = keras.layers.Conv2D(4, 3, padding="same", name="up")

    def call(self, x, training=False):
        h = self.act(self.norm(self.conv(x), training=training))
        return tf.nn.depth_to_space(self.up(h), 2)

    def train_step(self, data):
        low, high = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(self(low, training=True) - high))
        asked = self.conv.weights + self.norm.weights + self.act.weights + self.up.weights
        gradients = tape.gradient(loss, [w.value for w in asked])
        pairs = [(g, w) for g, w in zip(gradients, asked, strict=False) if g is not None]
        self.optimizer.apply_gradients(pairs)
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(10)
    model = Upscaler()
    rng = np.random.default_rng(10)
    low = rng.normal(size=(4, 6, 6, 1)).astype("float32")
    high = rng.normal(size=(4, 12, 12, 1)).astype("float32")
    model(low[:1])
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": low, "y": high, "fit_kwargs": {"batch_size": 4}}
