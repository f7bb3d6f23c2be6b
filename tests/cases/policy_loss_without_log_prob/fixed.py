# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Agent(keras.Model):
    """Actor and critic; the actor is pushed towards actions with a good advantage."""

    def __init__(self):
        super().__init__(name="agent")
        self.actor = keras.Sequential(
            [keras.Input((6,)), keras.layers.Dense(16, activation="tanh", name="a1"), keras.layers.Dense(4, name="a2")],
            name="actor",
        )
        self.critic = keras.Sequential(
            [keras.Input((6,)), keras.layers.Dense(16, activation="tanh", name="c1"), keras.layers.Dense(1, name="c2")],
            name="critic",
        )

    def call(self, state):
        return self.actor(state), self.critic(state)

    def actor_loss(self, state, payoff, value):
        logits = self.actor(state)
        action = tf.squeeze(tf.random.categorical(logits, 1, seed=7), 1)
        advantage = tf.gather(payoff, action, batch_dims=1) - tf.stop_gradient(value[:, 0])
        log_prob = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=action, logits=logits)
        return -tf.reduce_mean(log_prob * advantage)

    def train_step(self, data):
        state, payoff = data
        with tf.GradientTape() as tape:
            value = self.critic(state, training=True)
            critic = tf.reduce_mean(tf.square(value - tf.reduce_max(payoff, axis=1, keepdims=True)))
            loss = self.actor_loss(state, payoff, value) + 0.5 * critic
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(33)
    model = Agent()
    rng = np.random.default_rng(33)
    x = rng.normal(size=(32, 6)).astype("float32")
    y = rng.normal(size=(32, 4)).astype("float32")
    model(x[:1])
    model.compile(keras.optimizers.Adam(3e-4))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 32}}
