# mypy: ignore-errors
import tensorflow as tf


class Block:
    """Residual block that is recomputed in the backward pass."""

    def __init__(self, dim, name):
        init = tf.random_normal_initializer(stddev=0.3, seed=len(name))
        self.up = tf.Variable(init([dim, 2 * dim]), name=f"{name}_up")
        self.down = tf.Variable(init([2 * dim, dim]), name=f"{name}_down")

    def __call__(self, x):
        return x + tf.nn.gelu(x @ self.up) @ self.down


def build():
    tf.random.set_seed(77)
    blocks = [Block(6, name) for name in ("a", "bb", "ccc")]
    head = tf.Variable(tf.random.normal([6, 2], stddev=0.3), name="head")
    checkpointed = [tf.recompute_grad(b) for b in blocks]
    x, y = tf.random.normal([8, 6]), tf.random.normal([8, 2])

    def loss_fn(x, y):
        for block in checkpointed:
            x = block(x)
        return tf.reduce_mean(tf.math.squared_difference(x @ head, y))

    variables = [v for b in blocks for v in (b.up, b.down)] + [head]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (x, y)}
