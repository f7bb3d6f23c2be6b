# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def tower(name):
    return keras.Sequential(
        [
            keras.Input((9,)),
            keras.layers.Dense(12, activation="gelu", name=f"{name}_hidden"),
            keras.layers.Dense(5, name=f"{name}_out"),
        ],
        name=name,
    )


class BYOL(keras.Model):
    """The target follows the online network by a moving average and gets no gradient."""

    def __init__(self):
        super().__init__(name="byol")
        self.online, self.target = tower("online"), tower("target")
        self.predictor = keras.layers.Dense(5, name="predictor")
        self.target.trainable = False
        self.target.set_weights(self.online.get_weights())

    def call(self, x):
        return self.predictor(self.online(x))

    def follow(self, rate=0.01):
        for slow, fast in zip(self.target.weights, self.online.weights, strict=True):
            slow.assign((1.0 - rate) * slow + rate * fast)

    def train_step(self, data):
        one, two = data
        with tf.GradientTape() as tape:
            p = tf.math.l2_normalize(self(one, training=True), axis=1)
            z = tf.math.l2_normalize(tf.stop_gradient(self.target(two)), axis=1)
            loss = 2.0 - 2.0 * tf.reduce_mean(tf.reduce_sum(p * z, axis=1))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        self.follow()
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(138)
    model = BYOL()
    rng = np.random.default_rng(138)
    x = rng.normal(size=(12, 9)).astype("float32")
    y = (x + 0.2 * rng.normal(size=(12, 9))).astype("float32")
    model(x[:1])
    model.compile(keras.optimizers.SGD(0.05))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 12}}
