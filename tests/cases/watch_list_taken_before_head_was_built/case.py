# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Segmenter(keras.Model):
    """Watches exactly what it trains, to save memory; the list is made once."""

    def __init__(self):
        super().__init__(name="segmenter")
        self.encoder = keras.layers.Conv2D(4, 3, padding="same", activation="relu", name="encoder")
        self.encoder.build((None, 8, 8, 1))
        self.decoder = keras.layers.Conv2DTranspose(4, 3, padding="same", activation="relu", name="decoder")
        self.mask = keras.layers.Conv2D(1, 1, name="mask")
        self.mask.build((None, 8, 8, 4))
        self.watched = [w for layer in (self.encoder, self.decoder, self.mask) for w in layer.trainable_variables]

    def call(self, x):
        return self.mask(self.decoder(self.encoder(x)))

    def train_step(self, data):
        image, mask = data
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([w.value for w in self.watched])
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=mask, logits=self(image)))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(115)
    model = Segmenter()
    rng = np.random.default_rng(115)
    x = rng.normal(size=(4, 8, 8, 1)).astype("float32")
    y = (x > 0.2).astype("float32")
    model(x[:1])
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
