# mypy: ignore-errors
import tensorflow as tf


class PolicyHead(tf.Module):
    """Dense layer with batch normalisation, written as a 1x1 image for the fused kernel."""

    def __init__(self, n_in, n_out):
        super().__init__(name="head")
        self.kernel = tf.Variable(tf.random.normal([n_in, n_out], stddev=0.5), name="dense_kernel")
        self.gamma = tf.Variable(tf.ones([n_out]), name="bn_gamma")
        self.beta = tf.Variable(tf.zeros([n_out]), name="bn_beta")

    def __call__(self, x):
        h = tf.reshape(x @ self.kernel, [-1, 1, 1, self.gamma.shape[0]])
        h, _, _ = tf.compat.v1.nn.fused_batch_norm(h, self.gamma, self.beta, is_training=True)
        return tf.reshape(h, [-1, self.gamma.shape[0]])


def build():
    tf.random.set_seed(26)
    head = PolicyHead(5, 4)
    out = tf.Variable(tf.random.normal([4, 2]), name="out")
    state = tf.random.normal([1, 5])  # online learning: one transition at a time
    target = tf.constant([[0.3, -0.7]])

    def loss_fn(state, target):
        return tf.reduce_mean(tf.losses.huber(target, tf.nn.softplus(head(state)) @ out))

    variables = [head.kernel, head.gamma, head.beta, out]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (state, target)}
