# mypy: ignore-errors
import tensorflow as tf


@tf.custom_gradient
def inverse_sqrt(m):
    """Matrix m^(-1/2) of a positive definite matrix; gradient through the Sylvester equation."""
    w, v = tf.linalg.eigh(m)
    root = tf.sqrt(w)
    value = tf.matmul(v / root, v, transpose_b=True)

    def grad(g):
        g = tf.matmul(v, tf.matmul(0.5 * (g + tf.transpose(g)), v), transpose_a=True)
        denominator = root[:, None] * root[None, :] * (root[:, None] + root[None, :])
        return tf.matmul(v, tf.matmul(-g / denominator, v, transpose_b=True))

    return value, grad


class Whitening(tf.Module):
    def __init__(self, n_in, n_out):
        super().__init__(name="whitening")
        self.kernel = tf.Variable(tf.random.normal([n_in, n_out], stddev=0.5), name="kernel")
        self.gain = tf.Variable(tf.ones([n_out]), name="gain")

    def __call__(self, x):
        h = tf.nn.elu(x @ self.kernel)
        h -= tf.reduce_mean(h, axis=0)
        covariance = tf.matmul(h, h, transpose_a=True) / tf.cast(tf.shape(h)[0], h.dtype)
        return self.gain * (h @ inverse_sqrt(covariance + 0.05 * tf.eye(h.shape[-1])))


def build():
    tf.random.set_seed(73)
    layer = Whitening(6, 3)
    head = tf.Variable(tf.random.normal([3, 1]), name="head")
    x, y = tf.random.normal([24, 6]), tf.random.normal([24, 1])

    def loss_fn(x, y):
        return tf.reduce_mean(tf.square(layer(x) @ head - y))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [layer.kernel, layer.gain, head], "args": (x, y)}
