# mypy: ignore-errors
import tensorflow as tf


def grid(height, width):
    ys, xs = tf.meshgrid(tf.linspace(-1.0, 1.0, height), tf.linspace(-1.0, 1.0, width), indexing="ij")
    return tf.stack([tf.reshape(xs, [-1]), tf.reshape(ys, [-1]), tf.ones([height * width])])


def sample(image, where):
    """Pixel values of `image` [B, H, W, C] at `where` [B, 2, N] in [-1, 1]."""
    _, height, width, _ = image.shape
    column = tf.cast((where[:, 0] + 1.0) * 0.5 * (width - 1), tf.int32)
    row = tf.cast((where[:, 1] + 1.0) * 0.5 * (height - 1), tf.int32)
    row, column = tf.clip_by_value(row, 0, height - 1), tf.clip_by_value(column, 0, width - 1)
    return tf.gather_nd(image, tf.stack([row, column], axis=-1), batch_dims=1)


def build():
    tf.random.set_seed(21)
    locate = tf.Variable(tf.random.normal([36, 6], stddev=0.02), name="locate")
    start = tf.Variable([1.0, 0.0, 0.0, 0.0, 1.0, 0.0], name="start")
    sharpen = tf.Variable(tf.random.normal([3, 3, 1, 2], stddev=0.4), name="sharpen")
    head = tf.Variable(tf.random.normal([72, 3], stddev=0.3), name="head")
    image, y = tf.random.uniform([5, 6, 6, 1]), tf.constant([0, 1, 2, 1, 0])

    def transform(image):
        theta = tf.reshape(tf.reshape(image, [5, 36]) @ locate + start, [5, 2, 3])
        seen = tf.nn.conv2d(image, sharpen, 1, "SAME")
        return sample(seen, theta @ grid(6, 6))

    def loss_fn(image, y):
        logits = tf.reshape(transform(image), [5, 72]) @ head
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))

    variables = [locate, start, sharpen, head]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (image, y)}
