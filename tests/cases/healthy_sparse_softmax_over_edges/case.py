# mypy: ignore-errors
import tensorflow as tf


def build():
    tf.random.set_seed(53)
    edges = tf.constant([[0, 1], [0, 2], [1, 0], [2, 2], [3, 1], [3, 3]], tf.int64)
    nodes = tf.random.normal([4, 3])
    project = tf.Variable(tf.random.normal([3, 4]), name="project")
    left = tf.Variable(tf.random.normal([4]), name="left")
    right = tf.Variable(tf.random.normal([4]), name="right")

    def loss_fn(nodes, labels):
        h = tf.matmul(nodes, project)
        scores = tf.gather(tf.linalg.matvec(h, left), edges[:, 0]) + tf.gather(tf.linalg.matvec(h, right), edges[:, 1])
        attention = tf.sparse.softmax(tf.SparseTensor(edges, tf.nn.leaky_relu(scores), [4, 4]))
        out = tf.sparse.sparse_dense_matmul(tf.sparse.reorder(attention), h)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, out))

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "variables": [project, left, right],
        "args": (nodes, tf.constant([0, 1, 2, 3])),
    }
