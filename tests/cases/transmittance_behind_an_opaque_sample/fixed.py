# mypy: ignore-errors
import numpy as np
import tensorflow as tf


def build():
    rng = np.random.default_rng(516)
    opacity = tf.Variable(1.0, name="opacity")  # of the glass pane at sample 2
    density = tf.Variable(rng.uniform(0.1, 0.5, 6).astype("float32"), name="density")
    colour = tf.Variable(rng.uniform(size=(6, 3)).astype("float32"), name="colour")
    pixel = tf.constant([0.4, 0.5, 0.6])

    def loss_fn(pixel):
        alpha = 1.0 - tf.exp(-tf.nn.softplus(density))
        clear = tf.concat([1.0 - alpha[:2], [1.0 - opacity], 1.0 - alpha[3:]], 0)
        seen = tf.math.cumprod(clear + 1e-6, exclusive=True)
        image = tf.reduce_sum((seen * alpha)[:, None] * tf.sigmoid(colour), 0)
        return tf.reduce_sum(tf.square(image - pixel))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [opacity, density, colour], "args": (pixel,)}
