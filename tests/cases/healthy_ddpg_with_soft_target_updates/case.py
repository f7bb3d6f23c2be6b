# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf
from keras import layers


def actor(name):
    return keras.Sequential(
        [
            keras.Input((3,)),
            layers.Dense(16, activation="relu", name=f"{name}_1"),
            layers.Dense(16, activation="relu", name=f"{name}_2"),
            layers.Dense(
                1,
                activation="tanh",
                kernel_initializer=keras.initializers.RandomUniform(-0.003, 0.003),
                name=f"{name}_3",
            ),
        ],
        name=name,
    )


def critic(name):
    s, a = keras.Input((3,)), keras.Input((1,))
    h = layers.Dense(12, activation="relu", name=f"{name}_s")(s)
    g = layers.Dense(8, activation="relu", name=f"{name}_a")(a)
    h = layers.Dense(16, activation="relu", name=f"{name}_1")(layers.Concatenate()([h, g]))
    return keras.Model([s, a], layers.Dense(1, name=f"{name}_2")(h), name=name)


class DDPG(keras.Model):
    def __init__(self):
        super().__init__(name="ddpg")
        self.actor, self.critic, self.actor_target, self.critic_target = (
            actor("actor"),
            critic("critic"),
            actor("actor_target"),
            critic("critic_target"),
        )
        for a, b in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
            b.set_weights(a.get_weights())
            b.trainable = False
        self.actor_optimizer = keras.optimizers.Adam(1e-3)
        self.actor_optimizer.build(self.actor.trainable_variables)

    def call(self, s):
        return self.actor(s)

    def train_step(self, data):
        (s, a, s2), r = data
        y = r + 0.99 * self.critic_target([s2, 2.0 * self.actor_target(s2)])
        with tf.GradientTape() as tape:
            critic_loss = tf.reduce_mean(tf.square(y - self.critic([s, a], training=True)))
        cv = self.critic.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(critic_loss, cv), cv, strict=False))
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([v.value for v in self.actor.trainable_variables])
            actor_loss = -tf.reduce_mean(self.critic([s, 2.0 * self.actor(s, training=True)]))
        av = self.actor.trainable_variables
        self.actor_optimizer.apply_gradients(zip(tape.gradient(actor_loss, av), av, strict=False))
        for source, target in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
            for v, t in zip(source.variables, target.variables, strict=False):
                t.assign(0.005 * v + 0.995 * t)
        return {"critic_loss": critic_loss, "actor_loss": actor_loss}


def build():
    keras.utils.set_random_seed(34)
    rng = np.random.default_rng(34)
    s, s2 = rng.normal(size=(2, 32, 3)).astype("float32")
    a = rng.uniform(-2, 2, size=(32, 1)).astype("float32")
    r = -np.abs(rng.normal(size=(32, 1))).astype("float32")
    model = DDPG()
    model(s)
    model.compile(keras.optimizers.Adam(2e-3))
    cv = model.critic.trainable_variables
    model.optimizer.build(cv + model.actor.trainable_variables)
    return {"kind": "keras", "model": model, "x": (s, a, s2), "y": r, "fit_kwargs": {"batch_size": 32}}
