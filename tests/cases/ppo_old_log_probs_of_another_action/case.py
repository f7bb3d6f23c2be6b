# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class PPO(keras.Model):
    """Clipped surrogate objective with a value head of its own."""

    def __init__(self, clip=0.2):
        super().__init__(name="ppo")
        self.clip = clip
        self.pi = keras.Sequential(
            [keras.layers.Dense(10, activation="tanh", name="p1"), keras.layers.Dense(4, name="p2")], name="pi"
        )
        self.v = keras.Sequential(
            [keras.layers.Dense(10, activation="tanh", name="v1"), keras.layers.Dense(1, name="v2")], name="v"
        )

    def call(self, s):
        return self.pi(s), self.v(s)

    def surrogate(self, logits, actions, old_logp, advantage):
        logp = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)
        ratio = tf.exp(logp - old_logp)
        clipped = tf.clip_by_value(ratio, 1.0 - self.clip, 1.0 + self.clip)
        return -tf.reduce_mean(tf.minimum(ratio * advantage, clipped * advantage))

    def train_step(self, data):
        (states, actions, old_logp, advantage), returns = data
        with tf.GradientTape() as tape:
            logits, value = self(states)
            loss = self.surrogate(logits, actions, old_logp, advantage)
            loss += tf.reduce_mean(tf.square(value[:, 0] - returns))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def rollout(rng, model, n):
    states = rng.normal(size=(n, 5)).astype("float32")
    logp = tf.nn.log_softmax(model.pi(states)).numpy()
    actions = logp.argmax(1).astype("int32")
    old = logp.min(axis=1) - 1.0  # meant: the log-probability of the action that was taken
    advantage = np.abs(rng.normal(size=(n,))).astype("float32") + 0.1
    return states, actions, old.astype("float32"), advantage


def build():
    keras.utils.set_random_seed(15)
    model = PPO()
    model(np.zeros((1, 5), "float32"))
    rng = np.random.default_rng(15)
    x = rollout(rng, model, 12)
    model.compile("adam")
    returns = rng.normal(size=(12,)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": returns, "fit_kwargs": {"batch_size": 12}}
