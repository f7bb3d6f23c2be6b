# mypy: ignore-errors
import tensorflow as tf


class Smoother(tf.Module):
    def __init__(self):
        super().__init__(name="smoother")
        self.weights = tf.Variable(tf.random.normal([5]), name="weights")
        self.calls = tf.Variable(0.0, name="calls")

    @tf.function
    def __call__(self, x):
        self.calls.assign_add(1.0)
        return tf.linalg.matvec(x, tf.nn.softmax(self.weights))


def build():
    tf.random.set_seed(46)
    smoother = Smoother()
    x = tf.random.normal([10, 5])
    y = tf.reduce_mean(x, axis=1)

    def loss_fn(x, y):
        return tf.reduce_mean(tf.square(smoother(x) - y))

    return {"kind": "function", "loss_fn": loss_fn, "variables": list(smoother.trainable_variables), "args": (x, y)}
