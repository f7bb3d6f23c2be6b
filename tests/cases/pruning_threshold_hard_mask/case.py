# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class PrunedConv(keras.layers.Layer):
    """Convolution that drops the filters whose norm is below a learned threshold."""

    def build(self, shape):
        self.kernel = self.add_weight(name="kernel", shape=(3, 3, shape[-1], 8), initializer="he_normal")
        self.threshold = self.add_weight(name="threshold", shape=(), initializer=keras.initializers.Constant(1.0))

    def masked_kernel(self):
        norms = tf.norm(tf.reshape(self.kernel, [-1, 8]), axis=0)
        keep = tf.cast(norms > self.threshold, tf.float32)
        return self.kernel * keep

    def call(self, x):
        return tf.nn.relu(tf.nn.conv2d(x, self.masked_kernel(), 1, "SAME"))


def build():
    keras.utils.set_random_seed(15)
    model = keras.Sequential(
        [
            keras.Input((10, 10, 1), name="digit"),
            keras.layers.Conv2D(4, 3, activation="relu", name="first"),
            PrunedConv(name="pruned"),
            keras.layers.Flatten(name="flat"),
            keras.layers.Dense(4, name="logits"),
        ],
        name="net",
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), loss=loss)
    rng = np.random.default_rng(15)
    x = rng.uniform(size=(8, 10, 10, 1)).astype("float32")
    y = rng.integers(0, 4, size=(8,))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
