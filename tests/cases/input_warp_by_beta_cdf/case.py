# mypy: ignore-errors
import tensorflow as tf


class Warp(tf.Module):
    """Monotone warping of inputs in [0, 1] by the distribution function of a Beta variable."""

    def __init__(self, dims):
        super().__init__("warp")
        self.a = tf.Variable(tf.linspace(0.3, 0.6, dims), name="a")
        self.b = tf.Variable(tf.linspace(0.5, 0.2, dims), name="b")

    def __call__(self, x):
        return tf.math.betainc(tf.exp(self.a) + 0.0 * x, tf.exp(self.b) + 0.0 * x, x)


def kernel(x, length, amplitude):
    square = tf.reduce_sum(tf.square((x[:, None] - x[None]) / tf.exp(length)), axis=-1)
    return tf.exp(2.0 * amplitude) * tf.exp(-0.5 * square)


def build():
    tf.random.set_seed(52)
    warp = Warp(3)
    length = tf.Variable([-0.5, -0.3, -0.4], name="length")
    amplitude = tf.Variable(0.1, name="amplitude")
    noise = tf.Variable(-1.0, name="noise")
    x, y = tf.random.uniform([10, 3], 0.05, 0.95), tf.random.normal([10, 1])

    def loss_fn(x, y):
        """Negative log-likelihood of a Gaussian process on warped inputs."""
        covariance = kernel(warp(x), length, amplitude) + tf.exp(2.0 * noise) * tf.eye(10)
        factor = tf.linalg.cholesky(covariance)
        white = tf.linalg.triangular_solve(factor, y)
        return 0.5 * tf.reduce_sum(white**2) + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))

    variables = [warp.a, warp.b, length, amplitude, noise]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (x, y)}
