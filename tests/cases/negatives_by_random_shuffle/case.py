# mypy: ignore-errors
import tensorflow as tf


class Corruption(tf.Module):
    """Negative samples: encoded neighbours in another order."""

    def __init__(self):
        super().__init__("corruption")
        self.mix = tf.Variable(tf.random.normal([6, 4], stddev=0.4), name="mix")

    def __call__(self, nodes):
        return tf.random.shuffle(tf.tanh(nodes @ self.mix), seed=5)


def build():
    tf.random.set_seed(39)
    encoder = tf.Variable(tf.random.normal([6, 4], stddev=0.4), name="encoder")
    bilinear = tf.Variable(tf.random.normal([4, 4], stddev=0.4), name="bilinear")
    corrupt = Corruption()
    nodes, edges = tf.random.normal([10, 6]), tf.nn.softmax(tf.random.normal([10, 10]))

    def score(h, summary):
        return tf.einsum("nd,de,e->n", h, bilinear, summary)

    def loss_fn(nodes, edges):
        real = tf.tanh(edges @ nodes @ encoder)
        summary = tf.sigmoid(tf.reduce_mean(real, axis=0))
        fake = score(corrupt(edges @ nodes), summary)
        loss = tf.nn.sigmoid_cross_entropy_with_logits(tf.ones(10), score(real, summary))
        return tf.reduce_mean(loss + tf.nn.sigmoid_cross_entropy_with_logits(tf.zeros(10), fake))

    variables = [encoder, bilinear, corrupt.mix]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (nodes, edges)}
