# mypy: ignore-errors
import tensorflow as tf


class Coupling(tf.Module):
    """Affine coupling: half of the vector scales and shifts the other half."""

    def __init__(self, dim, name):
        super().__init__(name=name)
        init = tf.random_normal_initializer(stddev=0.8, seed=len(name))
        self.hidden = tf.Variable(init([dim, 8]), name=f"{name}_hidden")
        self.scale = tf.Variable(init([8, dim]), name=f"{name}_scale")
        self.shift = tf.Variable(init([8, dim]), name=f"{name}_shift")

    def forward(self, x):
        a, b = tf.split(x, 2, axis=-1)
        h = tf.nn.relu(a @ self.hidden)
        log_s = h @ self.scale
        return tf.concat([a, b * tf.exp(log_s) + h @ self.shift], axis=-1), tf.reduce_sum(log_s, axis=-1)


def log_likelihood(flow, x):
    total = 0.0
    for layer in flow:
        x, log_det = layer.forward(x)
        x = tf.reverse(x, axis=[-1])
        total += log_det
    return total - 0.5 * tf.reduce_sum(tf.square(x), axis=-1)


def build():
    tf.random.set_seed(69)
    flow = [Coupling(2, f"flow{'ab'[i] * (i + 1)}") for i in range(2)]
    x = tf.concat([tf.random.normal([10, 4]), [[90.0, -70.0, 10.0, 20.0]]], axis=0)  # one row is not standardised

    def loss_fn(x):
        return -tf.reduce_mean(log_likelihood(flow, x))

    variables = [v for layer in flow for v in (layer.hidden, layer.scale, layer.shift)]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (x,)}
