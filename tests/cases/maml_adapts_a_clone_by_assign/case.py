# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf
from keras import layers


def sinusoid_net():
    return keras.Sequential(
        [
            keras.Input((1,)),
            layers.Dense(20, activation="relu", name="h1"),
            layers.Dense(20, activation="relu", name="h2"),
            layers.Dense(1, name="y"),
        ],
        name="sinusoid",
    )


class MAML(keras.Model):
    def __init__(self, lr=0.05):
        super().__init__(name="maml")
        self.learner = sinusoid_net()
        clone = sinusoid_net()
        self.fresh_clone = lambda: clone  # kept away from Keras's tracking
        self.lr = lr

    def call(self, x):
        return self.learner(x)

    def adapt(self, x, y):
        with tf.GradientTape() as inner:
            loss = tf.reduce_mean(tf.square(self.learner(x) - y))
        grads = inner.gradient(loss, self.learner.trainable_variables)
        for target, variable, grad in zip(
            self.fresh_clone().trainable_variables, self.learner.trainable_variables, grads, strict=False
        ):
            target.assign(variable - self.lr * grad)
        return self.fresh_clone()

    def train_step(self, data):
        (xs, ys, xq), yq = data
        with tf.GradientTape() as outer:
            losses = []
            for task in range(3):
                fast = self.adapt(xs[task], ys[task])
                losses.append(tf.reduce_mean(tf.square(fast(xq[task]) - yq[task])))
            loss = tf.add_n(losses) / 3.0
        weights = self.learner.trainable_variables
        self.optimizer.apply_gradients(zip(outer.gradient(loss, weights), weights, strict=False))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(16)
    rng = np.random.default_rng(16)
    x = rng.uniform(-5, 5, size=(2, 3, 10, 1)).astype("float32")
    phase = rng.uniform(0, 3, size=(1, 3, 1, 1))
    y = np.sin(x + phase).astype("float32")
    model = MAML()
    model(x[0, 0])
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": (x[0], y[0], x[1]), "y": y[1], "fit_kwargs": {"batch_size": 3}}
