# mypy: ignore-errors
import keras
import tensorflow as tf


class Binner(tf.Module):
    """A numeric feature becomes the embedding of the bin that holds it; the edges are to be learned."""

    def __init__(self):
        super().__init__("binner")
        self.edges = tf.Variable([-1.0, -0.3, 0.2, 0.9], name="edges")
        self.table = tf.Variable(tf.random.normal([5, 3], stddev=0.5), name="table")

    def which(self, values):
        return tf.searchsorted(tf.sort(self.edges), tf.reshape(values, [-1]), side="right")

    def __call__(self, values):
        return tf.gather(self.table, self.which(values))


def build():
    tf.random.set_seed(18)
    binner = Binner()
    weights = tf.Variable(tf.random.normal([3, 1]), name="weights")
    values, y = tf.random.normal([20]), tf.random.normal([20, 1])

    @tf.function
    def predict(values):
        return binner(values) @ weights

    def loss_fn(values, y):
        return tf.reduce_mean(keras.losses.mean_squared_error(y, predict(values)))

    variables = [binner.edges, binner.table, weights]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (values, y)}
