# mypy: ignore-errors
import tensorflow as tf


def local_band(affinity, bandwidth):
    rows, columns = tf.range(tf.shape(affinity)[-2]), tf.range(tf.shape(affinity)[-1])
    distance = tf.cast(tf.abs(rows[:, None] - columns), tf.float32)
    return affinity * tf.sigmoid((bandwidth - distance) / 0.5)


class ContactMap(tf.Module):
    """A protein's contacts, with a learned locality."""

    def __init__(self, width):
        super().__init__(name="contact_map")
        draw = tf.random.Generator.from_seed(2)
        self.left = tf.Variable(draw.normal([width, 4], stddev=0.3), name="left")
        self.right = tf.Variable(draw.normal([width, 4], stddev=0.3), name="right")
        self.bandwidth = tf.Variable(4.0, name="bandwidth")

    def __call__(self, residues):
        affinity = tf.matmul(residues @ self.left, residues @ self.right, transpose_b=True)
        return local_band(affinity, self.bandwidth)


def build():
    net, draw = ContactMap(6), tf.random.Generator.from_seed(3)
    residues, contacts = draw.normal([4, 12, 6]), draw.normal([4, 12, 12])

    def loss_fn(residues, contacts):
        return tf.reduce_mean(tf.square(net(residues) - contacts))

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "variables": list(net.trainable_variables),
        "args": (residues, contacts),
    }
