# mypy: ignore-errors
import tensorflow as tf


@tf.function
def binary_conv(x, kernel):
    """Convolution with the signs of the kernel, scaled by its fan-in."""
    fan_in = tf.cast(tf.reduce_prod(tf.shape(kernel)[:-1]), tf.float32)
    return tf.nn.conv2d(x, tf.sign(kernel), 1, "SAME") * tf.math.rsqrt(fan_in)


def build():
    tf.random.set_seed(36)
    stem = tf.Variable(tf.random.normal([3, 3, 1, 4], stddev=0.4), name="stem")
    binary = tf.Variable(tf.random.normal([3, 3, 4, 4], stddev=0.4), name="binary")
    offset = tf.Variable(tf.zeros([4]), name="offset")
    head = tf.Variable(tf.random.normal([4, 3], stddev=0.4), name="head")
    image, label = tf.random.normal([6, 8, 8, 1]), tf.constant([0, 1, 2, 0, 1, 2])

    def features(image):
        h = tf.nn.relu(tf.nn.conv2d(image, stem, 2, "SAME"))
        h = tf.nn.bias_add(binary_conv(h, binary), offset)
        return tf.reduce_mean(tf.nn.swish(h), [1, 2])

    def loss_fn(image, label):
        logits = features(image) @ head
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits))

    variables = [stem, binary, offset, head]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (image, label)}
