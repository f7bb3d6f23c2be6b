# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class ActorCritic(keras.Model):
    def __init__(self, n_actions):
        super().__init__(name="a2c")
        self.body = keras.layers.Dense(12, activation="tanh", name="body")
        self.actor = keras.layers.Dense(n_actions, name="actor")
        self.critic = keras.layers.Dense(1, name="critic")

    def call(self, s):
        h = self.body(s)
        return self.actor(h), self.critic(h)

    def policy_loss(self, logits, actions, advantage):
        logp = tf.nn.log_softmax(logits, axis=-1)
        taken = tf.gather(logp, actions, batch_dims=1)
        entropy = -tf.reduce_sum(tf.exp(logp) * logp, axis=-1)
        return -tf.reduce_mean(taken * advantage) - 0.01 * tf.reduce_mean(entropy)

    def train_step(self, data):
        (states, actions), returns = data
        with tf.GradientTape() as tape:
            logits, value = self(states, training=True)
            advantage = returns - tf.squeeze(value, -1)
            value_loss = tf.reduce_mean(tf.square(advantage))
            loss = self.policy_loss(logits, actions, tf.stop_gradient(advantage)) + 0.5 * value_loss
        gradients = tape.gradient(loss, self.trainable_variables)
        gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(11)
    rng = np.random.default_rng(11)
    states = rng.normal(size=(16, 4)).astype("float32")
    actions = np.zeros((16,), "int32")
    returns = rng.normal(size=(16,)).astype("float32")
    model = ActorCritic(n_actions=1)  # a continuous action space of one dimension, read as a count
    model(states[:1])
    model.compile("rmsprop")
    return {"kind": "keras", "model": model, "x": (states, actions), "y": returns, "fit_kwargs": {"batch_size": 16}}
