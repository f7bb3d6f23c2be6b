# mypy: ignore-errors
"""Substitution model of molecular evolution: transition probabilities are expm(Q t), likelihood by pruning."""

import numpy as np
import tensorflow as tf

STATES = 4
LEAVES = {0: (1, 2), 1: (3, 4), 2: (5, 6)}


class RateModel(tf.Module):
    def __init__(self, seed):
        super().__init__(name="rates")
        rng = np.random.default_rng(seed)
        self.exchange = tf.Variable(rng.normal(size=(STATES, STATES)).astype("float32") * 0.3, name="exchange")
        self.stationary = tf.Variable(np.zeros(STATES, "float32"), name="stationary")
        self.log_branch = tf.Variable(rng.normal(size=(7,)).astype("float32") * 0.2 - 1.0, name="log_branch")

    def generator(self):
        rates = tf.exp(0.5 * (self.exchange + tf.transpose(self.exchange)))
        q = rates * tf.nn.softmax(self.stationary)[None]
        q = tf.linalg.set_diag(q, tf.zeros(STATES))
        return tf.linalg.set_diag(q, -tf.reduce_sum(q, axis=1))


@tf.function(jit_compile=True)
def transition_matrices(generator, times):
    return tf.linalg.expm(generator[None] * times[:, None, None])


def upward(node, messages, matrices):
    if node not in LEAVES:
        return messages[node - 3]
    left, right = (upward(child, messages, matrices) @ tf.transpose(matrices[child]) for child in LEAVES[node])
    return left * right


def build():
    model = RateModel(11)
    rng = np.random.default_rng(12)
    leaves = tf.one_hot(rng.integers(0, STATES, size=(4, 20)), STATES)

    def loss_fn(leaves):
        matrices = transition_matrices(model.generator(), tf.exp(model.log_branch))
        root = upward(0, tf.unstack(leaves), matrices)
        per_site = tf.reduce_sum(root * tf.nn.softmax(model.stationary), axis=-1)
        return -tf.reduce_mean(tf.math.log(per_site))

    variables = [model.exchange, model.stationary, model.log_branch]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (leaves,)}
