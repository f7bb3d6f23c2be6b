"""Steps that are compiled: methods, one that makes variables in its first call, one that is found by a name."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
x, y = np.random.rand(64, 4).astype("float32"), np.random.rand(64, 1).astype("float32")


def model(name):
    layers = [keras.layers.Input((4,)), keras.layers.Dense(8, "tanh"), keras.layers.Dropout(0.2), keras.layers.Dense(1)]
    return keras.Sequential(layers, name=name)


def digest(made):
    return float(sum(np.sum(np.abs(weight.numpy().astype("float64"))) for weight in made.trainable_variables)).hex()


class Gan:
    def __init__(self, name):
        self.generator, self.critic = model(f"{name}_generator"), model(f"{name}_critic")
        self.optimizers = keras.optimizers.Adam(1e-3), keras.optimizers.Adam(1e-3)

    @tf.function
    def train_step(self, batch):
        return self.step(batch)

    def step(self, batch):
        with tf.GradientTape() as of_generator, tf.GradientTape() as of_critic:
            fake = self.generator(tf.random.normal([8, 4]), training=True)
            loss = tf.reduce_mean(self.critic(batch * fake) ** 2)
            other = tf.reduce_mean((self.critic(batch, training=True) - 1) ** 2) - loss
        for tape, error, net, optimizer in zip(
            (of_generator, of_critic), (loss, other), (self.generator, self.critic), self.optimizers
        ):
            optimizer.apply_gradients(zip(tape.gradient(error, net.trainable_variables), net.trainable_variables))
        return loss


for name in ("first", "second"):
    gan = Gan(name)
    for _ in range(7):
        loss = gan.train_step(x[:8])
    print(float(loss).hex(), digest(gan.generator), digest(gan.critic))

net, optimizer = model("net"), keras.optimizers.Adam(1e-2)


def take_a_step(features, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(features, training=True) - labels) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
    return loss


@tf.function
def late(features, labels):
    return take_a_step(features, labels)


STEPS = {"a": take_a_step}


@tf.function(reduce_retracing=True)
def dispatched(features, labels):
    return STEPS["a"](features, labels)


@tf.function
def measure(features):
    return tf.reduce_sum(net(features))


for function in (late, dispatched):
    for _ in range(7):
        loss = function(x, y)
        measure(x)
    print(float(loss).hex(), digest(net), float(measure(x)).hex())
