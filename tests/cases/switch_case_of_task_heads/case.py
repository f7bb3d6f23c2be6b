# mypy: ignore-errors
import tensorflow as tf


def build():
    tf.random.set_seed(28)
    init = tf.random_normal_initializer(stddev=0.4, seed=5)
    trunk = tf.Variable(init([6, 8]), name="trunk")
    heads = [tf.Variable(init([8, n]), name=f"head_{task}") for task, n in (("depth", 1), ("normal", 3), ("label", 5))]

    def losses(h, targets):
        depth, normal, label = targets
        return [
            lambda: tf.reduce_mean(tf.abs(h @ heads[0] - depth)),
            lambda: 1.0 - tf.reduce_mean(tf.reduce_sum(tf.math.l2_normalize(h @ heads[1], 1) * normal, axis=1)),
            lambda: tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, h @ heads[2])),
        ]

    def loss_fn(task, x, depth, normal, label):
        h = tf.nn.gelu(x @ trunk)
        return tf.switch_case(task, losses(h, (depth, normal, label)))

    x = tf.random.normal([10, 6])
    depth, normal = tf.random.normal([10, 1]), tf.math.l2_normalize(tf.random.normal([10, 3]), 1)
    label = tf.random.uniform([10], 0, 5, dtype=tf.int32)
    args = (tf.constant(1), x, depth, normal, label)
    return {"kind": "function", "loss_fn": loss_fn, "variables": [trunk, *heads], "args": args}
