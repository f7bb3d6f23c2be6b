# mypy: ignore-errors
"""Meta-SGD: one learned step size for each weight, and a query loss of the weights before the adaptation."""

import numpy as np
import tensorflow as tf


class Learner(tf.Module):
    """Regression net with one learned step size per parameter (Meta-SGD)."""

    def __init__(self):
        super().__init__(name="learner")
        g = tf.random.Generator.from_seed(211)
        self.w1 = tf.Variable(g.normal([1, 6], stddev=0.7), name="w1")
        self.w2 = tf.Variable(g.normal([6, 1], stddev=0.7), name="w2")
        self.rate1 = tf.Variable(tf.fill([1, 6], 0.05), name="rate1")
        self.rate2 = tf.Variable(tf.fill([6, 1], 0.05), name="rate2")

    def net(self, x, params):
        return tf.tanh(x @ params[0]) @ params[1]

    def error(self, x, y, params):
        return tf.reduce_mean(tf.square(self.net(x, params) - y))

    def adapt(self, x, y):
        params = [self.w1, self.w2]
        with tf.GradientTape() as inner:
            loss = self.error(x, y, params)
        g1, g2 = inner.gradient(loss, params)
        return [self.w1 - self.rate1 * g1, self.w2 - self.rate2 * g2]

    def task_loss(self, task):
        xs, ys, xq, yq = tf.unstack(task)
        fast = self.adapt(xs, ys)
        slow = [self.w1, self.w2]
        drift = tf.add_n([tf.reduce_sum(tf.abs(a - b)) for a, b in zip(fast, slow, strict=True)])
        tf.debugging.assert_less(drift, 1e3)
        return self.error(xq, yq, fast)


def build():
    learner = Learner()
    rng = np.random.default_rng(211)
    tasks = tf.constant(rng.normal(size=(3, 4, 5, 1)).astype("float32"))

    def loss_fn(tasks):
        return tf.add_n([learner.task_loss(t) for t in tf.unstack(tasks)]) / 3.0

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "variables": [learner.w1, learner.w2, learner.rate1, learner.rate2],
        "args": (tasks,),
    }
