# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf
from keras import layers


def warp(image, flow):
    n, height, width = image.shape[0], image.shape[1], image.shape[2]
    ys, xs = tf.meshgrid(tf.range(height), tf.range(width), indexing="ij")
    y = tf.clip_by_value(tf.cast(ys, tf.float32) + flow[..., 0], 0.0, height - 1.0)
    x = tf.clip_by_value(tf.cast(xs, tf.float32) + flow[..., 1], 0.0, width - 1.0)
    y0, x0 = tf.floor(y), tf.floor(x)
    wy, wx = (y - y0)[..., None], (x - x0)[..., None]
    rows = tf.tile(tf.range(n)[:, None, None], (1, height, width))

    def at(a, b):
        a = tf.minimum(tf.cast(a, tf.int32), height - 1)
        b = tf.minimum(tf.cast(b, tf.int32), width - 1)
        return tf.gather_nd(image, tf.stack([rows, a, b], -1))

    top = (1 - wx) * at(y0, x0) + wx * at(y0, x0 + 1)
    bottom = (1 - wx) * at(y0 + 1, x0) + wx * at(y0 + 1, x0 + 1)
    return (1 - wy) * top + wy * bottom


class Flow(keras.Model):
    def __init__(self):
        super().__init__(name="flow")
        self.down = [layers.Conv2D(n, 3, strides=2, padding="same", activation="relu", name=f"down{n}") for n in (6, 8)]
        self.up = [
            layers.Conv2DTranspose(n, 4, strides=2, padding="same", activation="relu", name=f"up{n}") for n in (8, 6)
        ]
        self.vector = layers.Conv2D(2, 3, padding="same", name="vector")

    def call(self, pair):
        a, b = pair
        h = tf.concat([a, b], -1)
        for layer in [*self.down, *self.up]:
            h = layer(h)
        return 2.0 * self.vector(h)

    def train_step(self, data):
        a, b = data[0] if isinstance(data[0], tuple) else data
        with tf.GradientTape() as tape:
            flow = self((a, b), training=True)
            difference = warp(b, flow) - a
            inside = tf.cast(tf.abs(difference) < 5.0, tf.float32)
            photometric = tf.reduce_sum(inside * tf.sqrt(tf.square(difference) + 1e-6)) / (tf.reduce_sum(inside) + 1e-6)
            smooth = tf.reduce_mean(tf.abs(flow[:, 1:] - flow[:, :-1])) + tf.reduce_mean(
                tf.abs(flow[:, :, 1:] - flow[:, :, :-1])
            )
            loss = photometric + 0.05 * smooth
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=False))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(40)
    rng = np.random.default_rng(40)
    a = rng.uniform(size=(4, 12, 12, 1)).astype("float32")
    b = np.roll(a, 1, axis=2)
    model = Flow()
    model((a, b))
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": (a, b), "y": None, "fit_kwargs": {"batch_size": 4}}
