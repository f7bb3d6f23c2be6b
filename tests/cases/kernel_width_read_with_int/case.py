# mypy: ignore-errors
import tensorflow as tf


class AdaptivePool(tf.Module):
    """Moving average whose width should adapt to the data."""

    def __init__(self):
        super().__init__("pool")
        self.width = tf.Variable(3.4, name="width")
        self.level = tf.Variable([0.1, -0.2], name="level")

    def __call__(self, x):
        size = int(self.width)
        return tf.nn.avg_pool1d(x, size, 1, "SAME") + self.level


def build():
    tf.random.set_seed(77)
    pool = AdaptivePool()
    mix = tf.Variable(tf.random.normal([3, 3, 2], stddev=0.4), name="mix")
    x, y = tf.random.normal([4, 12, 3]), tf.random.normal([4, 12, 2])

    def loss_fn(x, y):
        return tf.reduce_mean(tf.abs(pool(tf.nn.conv1d(x, mix, 1, "SAME")) - y))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [pool.width, pool.level, mix], "args": (x, y)}
