# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class TripletModel(keras.Model):
    def __init__(self):
        super().__init__(name="triplet")
        self.embed = keras.layers.Dense(4, name="embed")

    def call(self, triplet):
        return self.embed(triplet)

    def train_step(self, data):
        triplet, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            anchor, positive, negative = tf.unstack(self(triplet, training=True), axis=1)
            near = tf.reduce_sum(tf.square(anchor - positive), axis=-1)
            far = tf.reduce_sum(tf.square(anchor - negative), axis=-1)
            loss = tf.reduce_mean(tf.maximum(near - far + 0.2, 0.0))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=False))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(41)
    model = TripletModel()
    model.compile(keras.optimizers.Adam(1e-3))
    rng = np.random.default_rng(41)
    anchor = rng.normal(size=(8, 5))
    x = np.stack([anchor, anchor + 0.01 * rng.normal(size=(8, 5)), 5.0 + anchor], axis=1).astype("float32")
    model(x)
    return {"kind": "keras", "model": model, "x": x, "y": None, "fit_kwargs": {"batch_size": 8}}
