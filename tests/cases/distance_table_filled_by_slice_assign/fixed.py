# mypy: ignore-errors
import tensorflow as tf


def ratios(product, box):
    volume = tf.reduce_prod(box, axis=0)
    return (volume[None] - tf.reduce_prod(product, axis=1)[:, None]) / volume[None]


def build():
    box = tf.Variable([[4.0, 5.0], [5.0, 6.0], [5.0, 7.0]], name="box")
    price = tf.Variable([1.0, 1.4], name="price")
    product = tf.constant([[3.0, 4.0, 5.0], [4.0, 5.0, 6.0], [1.0, 3.0, 3.0]])

    def loss_fn(product):
        return tf.reduce_mean(tf.nn.softplus(ratios(product, box) * price)) + 0.01 * tf.reduce_sum(price**2)

    return {"kind": "function", "loss_fn": loss_fn, "variables": [box, price], "args": (product,)}
