# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf
from keras import layers


class Actor(keras.Model):
    def __init__(self, actions):
        super().__init__(name="actor")
        self.h1, self.h2 = (
            layers.Dense(16, activation="relu", name="h1"),
            layers.Dense(16, activation="relu", name="h2"),
        )
        self.mean, self.log_std = layers.Dense(actions, name="mean"), layers.Dense(actions, name="log_std")

    def call(self, obs):
        h = self.h2(self.h1(obs))
        return self.mean(h), tf.clip_by_value(self.log_std(h), -5.0, 2.0)


def critic(name):
    return keras.Sequential(
        [keras.Input((7,)), layers.Dense(16, activation="relu", name=f"{name}_1"), layers.Dense(1, name=f"{name}_2")],
        name=name,
    )


class SAC(keras.Model):
    def __init__(self):
        super().__init__(name="sac")
        self.actor, self.q1, self.q2 = Actor(2), critic("q1"), critic("q2")
        self.seed = keras.random.SeedGenerator(1)

    def sample(self, obs):
        mean, log_std = self.actor(obs)
        u = mean + tf.exp(log_std) * keras.random.normal(tf.shape(mean), seed=self.seed)
        log_prob = -0.5 * tf.square((u - mean) / tf.exp(log_std)) - log_std - 0.5 * np.log(2 * np.pi)
        action = tf.tanh(u)
        return action, tf.reduce_sum(log_prob - 2.0 * (np.log(2.0) - u - tf.nn.softplus(-2.0 * u)), axis=1)

    def call(self, obs):
        action, _ = self.sample(obs)
        pair = tf.concat([obs, action], 1)
        return self.q1(pair), self.q2(pair)

    def train_step(self, data):
        (obs, action), target = data
        pair = tf.concat([obs, action], 1)
        critics = self.q1.trainable_variables + self.q2.trainable_variables
        with tf.GradientTape() as tape:
            q_loss = tf.reduce_mean(tf.square(self.q1(pair) - target)) + tf.reduce_mean(
                tf.square(self.q2(pair) - target)
            )
        self.optimizer.apply_gradients(zip(tape.gradient(q_loss, critics), critics, strict=False))
        with tf.GradientTape() as tape:
            action, log_prob = self.sample(obs)
            pair = tf.concat([obs, action], 1)
            q = tf.minimum(self.q1(pair), self.q2(pair))[:, 0]
            actor_loss = tf.reduce_mean(0.2 * log_prob - q)
        grads = tape.gradient(actor_loss, self.actor.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.actor.trainable_variables, strict=False))
        return {"q_loss": q_loss, "actor_loss": actor_loss}


def build():
    keras.utils.set_random_seed(9)
    rng = np.random.default_rng(9)
    obs = (rng.normal(size=(32, 5)) * [1, 1, 30, 1, 60]).astype("float32")  # positions in pixels
    action = rng.uniform(-1, 1, size=(32, 2)).astype("float32")
    target = rng.normal(size=(32, 1)).astype("float32")
    model = SAC()
    model(obs)
    model.compile(keras.optimizers.Adam(3e-4))
    return {"kind": "keras", "model": model, "x": (obs, action), "y": target, "fit_kwargs": {"batch_size": 32}}
