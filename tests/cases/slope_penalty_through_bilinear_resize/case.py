# mypy: ignore-errors
import tensorflow as tf


def network(image, stem, head):
    h = tf.tanh(tf.nn.conv2d(image, stem, 1, "SAME"))
    h = tf.image.resize(h, [10, 10], method="bilinear")
    return tf.reduce_sum(tf.nn.conv2d(h, head, 1, "VALID"), axis=[1, 2, 3])


def slope(image, *weights):
    """Derivative of the score with respect to each pixel."""
    with tf.GradientTape() as tape:
        tape.watch(image)
        score = network(image, *weights)
    return tape.gradient(score, image)


def build():
    tf.random.set_seed(61)
    stem = tf.Variable(tf.random.normal([3, 3, 2, 3], stddev=0.3), name="stem")
    head = tf.Variable(tf.random.normal([3, 3, 3, 1], stddev=0.3), name="head")
    image = tf.random.normal([2, 5, 5, 2])

    def loss_fn(image):
        """Lipschitz penalty alone: the slope should have length one."""
        length = tf.norm(tf.reshape(slope(image, stem, head), [2, -1]), axis=1)
        return tf.reduce_mean(tf.square(length - 1.0))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [stem, head], "args": (image,)}
