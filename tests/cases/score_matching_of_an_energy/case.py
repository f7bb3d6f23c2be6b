# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf
from keras import layers


class Energy(keras.Model):
    def __init__(self):
        super().__init__(name="energy")
        self.hidden = [layers.Dense(n, activation="softplus", name=f"h{i}") for i, n in enumerate((24, 24, 12))]
        self.out = layers.Dense(1, name="out")

    def call(self, x):
        h = x
        for layer in self.hidden:
            h = layer(h)
        return self.out(h) + 0.5 * tf.reduce_sum(tf.square(x), axis=1, keepdims=True)

    def train_step(self, data):
        clean, noise = data
        noisy = clean + 0.3 * noise
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(noisy)
                energy = tf.reduce_sum(self(noisy, training=True))
            score = -inner.gradient(energy, noisy)
            loss = 0.5 * tf.reduce_mean(tf.reduce_sum(tf.square(0.3 * score + noise), axis=1))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(
            (g, v) for g, v in zip(grads, self.trainable_variables, strict=False) if g is not None
        )
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(28)
    rng = np.random.default_rng(28)
    clean = rng.normal(size=(32, 2)).astype("float32") + np.array([2, 0], "float32")
    noise = rng.normal(size=(32, 2)).astype("float32")
    model = Energy()
    model(clean)
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": clean, "y": noise, "fit_kwargs": {"batch_size": 32}}
