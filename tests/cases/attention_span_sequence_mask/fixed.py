# mypy: ignore-errors
import tensorflow as tf


def attend(query, key, value, span):
    """Attention that looks back as far as each head's learned span, with a ramp at the end of it."""
    scores = tf.einsum("bhqd,bhkd->bhqk", query, key) / 2.0
    reach = tf.range(scores.shape[-1], dtype=tf.float32)
    inside = tf.sigmoid(span[:, None] - reach)
    weights = tf.nn.softmax(scores + tf.math.log(inside)[None, :, None, :])
    return tf.einsum("bhqk,bhkd->bhqd", weights, value)


def build():
    tf.random.set_seed(16)
    heads, width = 2, 4
    projections = tf.Variable(tf.random.normal([3, 6, heads, width], stddev=0.4), name="projections")
    span = tf.Variable([3.2, 5.4], name="span")
    readout = tf.Variable(tf.random.normal([heads * width, 2], stddev=0.4), name="readout")
    x, y = tf.random.normal([4, 7, 6]), tf.random.normal([4, 7, 2])

    def loss_fn(x, y):
        query, key, value = tf.unstack(tf.einsum("btf,pfhd->pbhtd", x, projections))
        mixed = tf.transpose(attend(query, key, value, span), [0, 2, 1, 3])
        return tf.reduce_mean(tf.math.squared_difference(tf.reshape(mixed, [4, 7, 8]) @ readout, y))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [projections, span, readout], "args": (x, y)}
