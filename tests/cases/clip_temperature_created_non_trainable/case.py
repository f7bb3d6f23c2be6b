# mypy: ignore-errors
import math

import tensorflow as tf


class DualEncoder(tf.Module):
    def __init__(self):
        super().__init__(name="dual")
        init = tf.random_normal_initializer(stddev=0.3)
        self.image = tf.Variable(init([10, 6]), name="image_projection")
        self.text = tf.Variable(init([7, 6]), name="text_projection")
        # learned temperature, clipped from above after each step
        self.logit_scale = tf.Variable(math.log(1 / 0.07), trainable=False, name="logit_scale", dtype=tf.float32)

    def logits(self, images, texts):
        a = tf.math.l2_normalize(images @ self.image, axis=-1)
        b = tf.math.l2_normalize(texts @ self.text, axis=-1)
        return tf.exp(self.logit_scale) * tf.einsum("id,jd->ij", a, b)


def build():
    tf.random.set_seed(9)
    model = DualEncoder()
    images, texts = tf.random.normal([8, 10]), tf.random.normal([8, 7])

    def loss_fn(images, texts):
        logits = model.logits(images, texts)
        labels = tf.range(tf.shape(logits)[0])
        rows = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        columns = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, tf.transpose(logits))
        return 0.5 * tf.reduce_mean(rows + columns)

    variables = [model.image, model.text, model.logit_scale]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (images, texts)}
