# mypy: ignore-errors
import tensorflow as tf


class Learner:
    """Two-layer network that adapts to a task by gradient descent (MAML)."""

    def __init__(self):
        self.params = {
            "w1": tf.Variable(tf.random.normal([1, 8], stddev=0.6), name="w1"),
            "b1": tf.Variable(tf.zeros([8]), name="b1"),
            "w2": tf.Variable(tf.random.normal([8, 1], stddev=0.6), name="w2"),
        }
        self.log_rate = tf.Variable(-2.0, name="log_rate")

    def predict(self, x):
        p = self.params
        return tf.tanh(x @ p["w1"] + p["b1"]) @ p["w2"]

    def adapt(self, x, y, rate):
        with tf.GradientTape() as tape:
            tape.watch(list(self.params.values()))
            loss = tf.reduce_mean(tf.square(self.predict(x) - y))
        slopes = tape.gradient(loss, self.params)
        self.params = {k: v - rate * slopes[k] for k, v in self.params.items()}


def build():
    tf.random.set_seed(97)
    learner = Learner()
    meta = [*learner.params.values(), learner.log_rate]
    x = tf.random.uniform([10, 1], -3.0, 3.0)
    learner.adapt(x, tf.sin(x), 0.05)  # a first task, to see that adapting works

    def loss_fn(x, query):
        learner.adapt(x, tf.sin(x + 0.5), tf.exp(learner.log_rate))
        loss = tf.reduce_mean(tf.square(learner.predict(query) - tf.sin(query + 0.5)))
        learner.params = {k: tf.stop_gradient(v) for k, v in start.items()}
        return loss

    start = learner.params
    return {"kind": "function", "loss_fn": loss_fn, "variables": meta, "args": (x, x + 0.1)}
