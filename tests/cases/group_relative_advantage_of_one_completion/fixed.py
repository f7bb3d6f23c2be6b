# mypy: ignore-errors
"""Group-relative policy optimisation of a tiny language model; three completions a prompt."""

import numpy as np
import tensorflow as tf


class Policy(tf.Module):
    def __init__(self, rng, vocabulary=9, width=6):
        super().__init__(name="policy")

        def normal(*shape):
            return tf.constant(rng.normal(size=shape).astype("float32") * 0.4)

        self.embed = tf.Variable(normal(vocabulary, width), name="embed")
        self.recur = tf.Variable(normal(width, width), name="recur")
        self.head = tf.Variable(normal(width, vocabulary), name="head")

    def token_log_probs(self, tokens):
        steps = tf.transpose(tf.gather(self.embed, tokens[:, :-1]), [1, 0, 2])
        states = tf.scan(lambda h, x: tf.tanh(h @ self.recur + x), steps, initializer=tf.zeros_like(steps[0]))
        logp = tf.nn.log_softmax(tf.einsum("tbw,wv->btv", states, self.head))
        return tf.gather(logp, tokens[:, 1:], batch_dims=2)


def group_advantages(rewards, generations, eps=1e-4):
    grouped = tf.reshape(rewards, [-1, generations])
    mean = tf.reduce_mean(grouped, axis=1, keepdims=True)
    std = tf.math.reduce_std(grouped, axis=1, keepdims=True)
    return tf.reshape((grouped - mean) / (std + eps), [-1])


def clipped_surrogate(logp, old_logp, advantages, mask, clip=0.2):
    ratio = tf.exp(logp - old_logp)
    adv = advantages[:, None]
    per_token = -tf.minimum(ratio * adv, tf.clip_by_value(ratio, 1 - clip, 1 + clip) * adv)
    return tf.reduce_sum(per_token * mask) / tf.reduce_sum(mask)


def build(generations=3):
    rng = np.random.default_rng(27)
    policy = Policy(rng)
    tokens = tf.constant(rng.integers(0, 9, size=(6, 5)).astype("int32"))
    mask = tf.constant(np.tril(np.ones((6, 4), "float32"), 2))
    rewards = tf.constant(rng.normal(size=6).astype("float32"))
    old = tf.stop_gradient(policy.token_log_probs(tokens) + 0.02)

    def loss_fn(tokens, old, rewards, mask):
        advantages = group_advantages(rewards, generations)
        return clipped_surrogate(policy.token_log_probs(tokens), old, advantages, mask)

    variables = (policy.embed, policy.recur, policy.head)
    return {"kind": "function", "loss_fn": loss_fn, "variables": list(variables), "args": (tokens, old, rewards, mask)}
