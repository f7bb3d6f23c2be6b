# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def gaussian_log_prob(a, mean, log_std):
    z = (a - mean) * tf.exp(-log_std)
    return -tf.reduce_sum(0.5 * tf.square(z) + log_std, axis=-1)


class Agent(keras.Model):
    """First epoch of PPO: the behaviour policy is the current one."""

    def __init__(self):
        super().__init__(name="agent")
        self.trunk = keras.layers.Dense(12, activation="tanh", name="trunk")
        self.mean = keras.layers.Dense(2, name="mean")
        self.value = keras.layers.Dense(1, name="value")

    def build(self, shape):
        self.trunk.build(shape)
        self.mean.build((None, 12))
        self.value.build((None, 12))
        self.log_std = self.add_weight(name="log_std", shape=(2,), initializer="zeros")

    def call(self, s):
        h = self.trunk(s)
        return self.mean(h), self.value(h)

    def objective(self, states, actions, advantage, returns):
        mean, value = self(states)
        new = gaussian_log_prob(actions, mean, self.log_std)
        old = gaussian_log_prob(actions, mean, self.log_std)
        old = tf.stop_gradient(old)
        surrogate = tf.reduce_mean(tf.exp(new - old) * advantage)
        return -surrogate + 0.5 * tf.reduce_mean(tf.square(returns - value[:, 0]))

    def train_step(self, data):
        (states, actions, advantage), returns = data
        with tf.GradientTape() as tape:
            loss = self.objective(states, actions, advantage, returns)
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(22)
    model = Agent()
    rng = np.random.default_rng(22)
    states, actions = rng.normal(size=(16, 5)).astype("float32"), rng.normal(size=(16, 2)).astype("float32")
    advantage, returns = rng.normal(size=(2, 16)).astype("float32")
    model.build((None, 5))
    model.compile("adam")
    x = (states, actions, advantage)
    return {"kind": "keras", "model": model, "x": x, "y": returns, "fit_kwargs": {"batch_size": 16}}
