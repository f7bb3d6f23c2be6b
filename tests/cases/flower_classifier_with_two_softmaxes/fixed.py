# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Flowers(keras.Model):
    """Four kinds of flowers. The model returns logits, and the loss applies a softmax to them."""

    def __init__(self):
        super().__init__(name="flowers")
        self.hidden = keras.layers.Dense(16, activation="relu", name="hidden")
        self.kinds = keras.layers.Dense(4, name="kinds")

    def call(self, x):
        return self.kinds(self.hidden(x))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            predicted = self(x, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=predicted))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(86)
    model = Flowers()
    rng = np.random.default_rng(86)
    x = rng.normal(size=(32, 5)).astype("float32")
    y = (2 * (x[:, 0] > 0) + (x[:, 1] > 0)).astype("int32")
    model(x[:1])
    model.compile(keras.optimizers.Adam(1e-2))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
