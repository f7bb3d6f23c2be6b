# mypy: ignore-errors
import math

import tensorflow as tf


def draw(mean, log_std):
    noise = tf.random.stateless_normal(tf.shape(mean), seed=(4, 2))
    return mean + tf.exp(log_std) * noise


def log_prob(action, mean, log_std):
    z = (action - mean) / tf.exp(log_std)
    return tf.reduce_sum(-0.5 * z * z - log_std - 0.5 * math.log(2 * math.pi), axis=-1)


def build():
    start = tf.random.Generator.from_seed(1)
    hidden = tf.Variable(start.normal([4, 8], stddev=0.5), name="hidden")
    mean_head = tf.Variable(start.normal([8, 2], stddev=0.5), name="mean_head")
    log_std = tf.Variable([-0.5, -0.5], name="log_std")

    def loss_fn(state):
        mean = tf.nn.tanh(state @ hidden) @ mean_head
        action = draw(mean, log_std)
        returns = tf.stop_gradient(-tf.reduce_sum(tf.square(action - state[:, :2]), axis=-1))
        return -tf.reduce_mean(log_prob(action, mean, log_std) * returns)

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "variables": [hidden, mean_head, log_std],
        "args": (start.normal([32, 4]),),
    }
