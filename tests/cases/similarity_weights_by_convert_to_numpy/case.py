# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Contrast(keras.Model):
    """Embeddings pulled together by weights that come from the projection's own similarities."""

    def __init__(self):
        super().__init__(name="contrast")
        self.encoder = keras.layers.Dense(8, activation="tanh", name="encoder")
        self.projector = keras.layers.Dense(4, name="projector")

    def call(self, x):
        return self.encoder(x)

    def weights_of_pairs(self, h):
        z = keras.ops.convert_to_numpy(keras.ops.normalize(self.projector(h)))
        score = np.exp(z @ z.T / 0.5)
        np.fill_diagonal(score, 0.0)
        return score / score.sum(axis=1, keepdims=True)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            h = self(x, training=True)
            far = tf.reduce_sum(tf.square(h[:, None] - h[None]), axis=-1)
            loss = tf.reduce_mean(self.weights_of_pairs(h) * far * y[:, None])
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(79)
    model = Contrast()
    rng = np.random.default_rng(79)
    x = rng.normal(size=(10, 6)).astype("float32")
    y = rng.uniform(size=(10,)).astype("float32")
    model.projector(model(x[:1]))
    model.compile(keras.optimizers.Adam(1e-3), run_eagerly=True)
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 10}}
