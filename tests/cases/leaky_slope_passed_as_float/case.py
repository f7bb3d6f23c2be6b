# mypy: ignore-errors
import tensorflow as tf


class LearnedLeaky(tf.Module):
    """Leaky rectifier with a slope of its own; the kernel wants a Python number."""

    def __init__(self, name):
        super().__init__(name)
        self.slope = tf.Variable(0.2, name=f"{name}_slope")

    def __call__(self, x):
        return tf.nn.leaky_relu(x, alpha=float(self.slope))


def build():
    tf.random.set_seed(71)
    act1, act2 = LearnedLeaky("act1"), LearnedLeaky("act2")
    w1 = tf.Variable(tf.random.normal([5, 8], stddev=0.5), name="w1")
    w2 = tf.Variable(tf.random.normal([8, 8], stddev=0.5), name="w2")
    w3 = tf.Variable(tf.random.normal([8, 1], stddev=0.5), name="w3")
    x, y = tf.random.normal([10, 5]), tf.random.normal([10, 1])

    def loss_fn(x, y):
        return tf.reduce_mean(tf.square(act2(act1(x @ w1) @ w2) @ w3 - y))

    variables = [w1, act1.slope, w2, act2.slope, w3]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (x, y)}
