# mypy: ignore-errors
import tensorflow as tf


class Table:
    """All ratios of volumes between products and boxes."""

    def __init__(self, products, boxes):
        self.cells = tf.Variable(tf.zeros([products, boxes]), trainable=False, name="cells")

    def fill(self, product, box):
        for i in range(product.shape[0]):
            for j in range(box.shape[1]):
                volume = tf.reduce_prod(box[:, j])
                self.cells[i, j].assign((volume - tf.reduce_prod(product[i])) / volume)
        return tf.convert_to_tensor(self.cells)


def build():
    box = tf.Variable([[4.0, 5.0], [5.0, 6.0], [5.0, 7.0]], name="box")
    price = tf.Variable([1.0, 1.4], name="price")
    product = tf.constant([[3.0, 4.0, 5.0], [4.0, 5.0, 6.0], [1.0, 3.0, 3.0]])
    table = Table(3, 2)

    def loss_fn(product):
        waste = table.fill(product, box)
        return tf.reduce_mean(tf.nn.softplus(waste * price)) + 0.01 * tf.reduce_sum(price**2)

    return {"kind": "function", "loss_fn": loss_fn, "variables": [box, price], "args": (product,)}
