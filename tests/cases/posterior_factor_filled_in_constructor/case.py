# mypy: ignore-errors
import tensorflow as tf


class Posterior(tf.Module):
    """Gaussian with a full covariance; the factor is filled from a vector."""

    def __init__(self, dims):
        super().__init__("posterior")
        self.mean = tf.Variable(tf.zeros([dims]), name="mean")
        self.below = tf.Variable(tf.random.normal([dims, dims], stddev=0.1), name="below")
        self.log_diagonal = tf.Variable(tf.fill([dims], -1.0), name="log_diagonal")
        self.factor = self.triangular()

    def triangular(self):
        strict = tf.linalg.band_part(self.below, -1, 0) - tf.linalg.diag(tf.linalg.diag_part(self.below))
        return strict + tf.linalg.diag(tf.exp(self.log_diagonal))

    def draw(self, count):
        noise = tf.random.stateless_normal([count, self.mean.shape[0]], seed=[8, 1])
        return self.mean + tf.matmul(noise, self.factor, transpose_b=True)

    def entropy(self):
        return tf.reduce_sum(tf.math.log(tf.linalg.diag_part(self.factor)))


def build():
    tf.random.set_seed(81)
    posterior = Posterior(3)
    noise = tf.Variable(0.3, name="noise")
    x, y = tf.random.normal([20, 3]), tf.random.normal([20])

    @tf.function
    def log_likelihood(weights, x, y):
        residual = y[None] - tf.matmul(weights, x, transpose_b=True)
        return -0.5 * tf.reduce_sum(tf.square(residual / tf.exp(noise)), axis=1) - 20.0 * noise

    def loss_fn(x, y):
        """Negative evidence lower bound."""
        weights = posterior.draw(4)
        prior = -0.5 * tf.reduce_sum(weights**2, axis=1)
        return -tf.reduce_mean(log_likelihood(weights, x, y) + prior) - posterior.entropy()

    variables = [posterior.mean, posterior.below, posterior.log_diagonal, noise]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (x, y)}
