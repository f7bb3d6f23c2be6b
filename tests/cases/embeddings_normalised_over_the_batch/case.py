# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Matcher(keras.Model):
    """Finds the pair of each row among the rows of the batch."""

    def __init__(self):
        super().__init__(name="matcher")
        self.hidden = keras.layers.Dense(16, activation="tanh", name="hidden")
        self.embedding = keras.layers.Dense(6, name="embedding")

    def call(self, x):
        return tf.math.l2_normalize(self.embedding(self.hidden(x)))

    def train_step(self, data):
        x, pair = data
        with tf.GradientTape() as tape:
            similar = tf.matmul(self(x, training=True), self(pair, training=True), transpose_b=True)
            labels = tf.range(tf.shape(x)[0])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, similar / 0.1))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(92)
    model = Matcher()
    rng = np.random.default_rng(92)
    x = rng.normal(size=(32, 5)).astype("float32")
    pair = (x + 0.1 * rng.normal(size=x.shape)).astype("float32")
    model(x[:1])
    model.compile(keras.optimizers.Adam(1e-2))
    return {"kind": "keras", "model": model, "x": x, "y": pair, "fit_kwargs": {"batch_size": 16}}
