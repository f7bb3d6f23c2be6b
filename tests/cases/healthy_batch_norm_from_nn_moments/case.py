# mypy: ignore-errors
import tensorflow as tf


def batch_norm(x, scale, offset):
    """Normalisation over batch and space; tf.nn.moments stops the gradient of its shift on purpose."""
    mean, variance = tf.nn.moments(x, axes=[0, 1, 2])
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)


def build():
    tf.random.set_seed(131)
    kernels = [tf.Variable(tf.random.normal([3, 3, i, 4], stddev=0.3), name=f"kernel{n}") for n, i in enumerate((2, 4))]
    scales = [tf.Variable(tf.ones([4]), name=f"scale{n}") for n in range(2)]
    offsets = [tf.Variable(tf.fill([4], 0.1), name=f"offset{n}") for n in range(2)]
    head = tf.Variable(tf.random.normal([4, 3], stddev=0.4), name="head")
    x, y = tf.random.normal([6, 7, 7, 2]), tf.constant([0, 1, 2, 2, 1, 0])

    def loss_fn(x, y):
        for kernel, scale, offset in zip(kernels, scales, offsets, strict=True):
            x = tf.nn.elu(batch_norm(tf.nn.conv2d(x, kernel, 1, "SAME"), scale, offset))
        logits = tf.reduce_max(x, axis=[1, 2]) @ head
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [*kernels, *scales, *offsets, head], "args": (x, y)}
