# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class MultiTask(keras.Model):
    """Depth and labels from one trunk, balanced by learned uncertainties; two optimizers."""

    def __init__(self):
        super().__init__(name="multitask")
        self.trunk = keras.layers.Dense(12, activation="relu", name="trunk")
        self.depth = keras.layers.Dense(1, name="depth")
        self.label = keras.layers.Dense(4, name="label")
        self.log_sigma = self.add_weight(name="log_sigma", shape=(2,), initializer="zeros")

    def compile(self, trunk_optimizer, head_optimizer):
        super().compile()
        self.trunk_optimizer, self.head_optimizer = trunk_optimizer, head_optimizer

    def call(self, x):
        h = self.trunk(x)
        return self.depth(h), self.label(h)

    def balanced(self, losses):
        return tf.reduce_sum(tf.exp(-2.0 * self.log_sigma) * tf.stack(losses) + self.log_sigma)

    def train_step(self, data):
        x, (depth, label) = data
        with tf.GradientTape() as tape:
            d, logits = self(x, training=True)
            entropy = keras.losses.sparse_categorical_crossentropy(label, logits, from_logits=True)
            loss = self.balanced([tf.reduce_mean(tf.abs(d - depth)), tf.reduce_mean(entropy)])
        trunk = self.trunk.trainable_variables
        heads = self.depth.trainable_variables + self.label.trainable_variables
        for_trunk, for_heads = tape.gradient(loss, [trunk, heads])
        self.trunk_optimizer.apply_gradients(zip(for_trunk, trunk, strict=True))
        self.head_optimizer.apply_gradients(zip(for_heads, heads, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(118)
    model = MultiTask()
    rng = np.random.default_rng(118)
    x = rng.normal(size=(16, 6)).astype("float32")
    y = (rng.normal(size=(16, 1)).astype("float32"), rng.integers(0, 4, size=(16,)))
    model(x[:1])
    model.compile(keras.optimizers.SGD(1e-2), keras.optimizers.Adam(1e-3))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
