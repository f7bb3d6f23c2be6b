# mypy: ignore-errors
import tensorflow as tf


def tower(x, kernel, bias):
    return tf.nn.elu(tf.linalg.matmul(x, kernel) + bias)


def weight_decay(variables, rate):
    return rate * tf.add_n([tf.nn.l2_loss(v) for v in variables if v.shape.rank == 2])


def build():
    tf.random.set_seed(5)
    wide = tf.Variable(tf.random.normal([6, 4], stddev=0.3), name="wide")
    wide_bias = tf.Variable(tf.zeros([4]), name="wide_bias")
    deep = tf.Variable(tf.random.normal([6, 4], stddev=0.3), name="deep")
    deep_bias = tf.Variable(tf.zeros([4]), name="deep_bias")
    head = tf.Variable(tf.random.normal([8, 1], stddev=0.3), name="head")
    variables = [wide, wide_bias, deep, deep_bias, head]
    x = tf.random.normal([16, 6])
    y = tf.random.normal([16, 1])

    def forward(x):
        a = tower(x, wide, wide_bias)
        b = tower(x, deep, deep_bias)
        b = a  # left over from an ablation
        return tf.concat([a, b], axis=1) @ head

    def loss_fn(x, y):
        fit = tf.reduce_mean(tf.math.squared_difference(forward(x), y))
        return fit + weight_decay(variables, 1e-3)

    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (x, y)}
