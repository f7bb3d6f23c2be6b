# mypy: ignore-errors
import tensorflow as tf


class HalfAttention(tf.Module):
    def __init__(self, dim):
        super().__init__(name="attention")
        init = tf.random_normal_initializer(stddev=1.0, seed=7)
        self.q = tf.Variable(init([dim, dim]), name="query")
        self.k = tf.Variable(init([dim, dim]), name="key")
        self.v = tf.Variable(init([dim, dim]), name="value")

    def __call__(self, x):
        half = [tf.cast(w, tf.float16) for w in (self.q, self.k, self.v)]
        q, k, v = (tf.einsum("btd,de->bte", x, w) for w in half)
        scores = tf.matmul(q, k, transpose_b=True)
        # scaled after the product, as in the paper: too late for float16
        weights = tf.nn.softmax(scores / tf.cast(tf.shape(q)[-1], tf.float16))
        return tf.matmul(weights, v)


def build():
    tf.random.set_seed(47)
    attention = HalfAttention(32)
    head = tf.Variable(tf.random.normal([32, 1], stddev=0.1), name="head")
    x = tf.cast(8.0 * tf.random.normal([2, 6, 32]), tf.float16)
    y = tf.random.normal([2, 6, 1])

    def loss_fn(x, y):
        h = tf.cast(attention(x), tf.float32)
        return tf.reduce_mean(tf.abs(h @ head - y))

    variables = [attention.q, attention.k, attention.v, head]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (x, y)}
