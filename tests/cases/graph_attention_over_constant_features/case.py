# mypy: ignore-errors
import tensorflow as tf


def segment_softmax(scores, segments, count):
    top = tf.math.unsorted_segment_max(scores, segments, count)
    weights = tf.exp(scores - tf.stop_gradient(tf.gather(top, segments)))
    return weights / tf.gather(tf.math.unsorted_segment_sum(weights, segments, count), segments)


class GraphAttention(tf.Module):
    def __init__(self, n_in, n_edge, n_out):
        super().__init__(name="gat")
        init = tf.random_normal_initializer(stddev=0.5, seed=3)
        self.value = tf.Variable(init([n_in, n_out]), name="value")
        self.edge = tf.Variable(init([n_edge]), name="edge_attention")

    def __call__(self, nodes, edges, senders, receivers):
        n = tf.shape(nodes)[0]
        scores = tf.nn.leaky_relu(tf.linalg.matvec(edges, self.edge))
        alpha = segment_softmax(scores, receivers, n)
        messages = tf.gather(nodes @ self.value, senders) * alpha[:, None]
        return tf.math.unsorted_segment_sum(messages, receivers, n)


def build():
    tf.random.set_seed(23)
    layer = GraphAttention(3, 4, 5)
    head = tf.Variable(tf.random.normal([5, 1]), name="head")
    nodes = tf.ones([7, 3])  # no node features in this data set: ones
    senders = tf.constant([0, 1, 2, 3, 4, 5, 6, 0, 2, 4, 6, 1])
    receivers = tf.constant([1, 2, 3, 4, 5, 6, 0, 2, 4, 6, 1, 3])
    edges = tf.random.normal([12, 4])
    y = tf.random.normal([7, 1])

    def loss_fn(nodes, edges, y):
        h = tf.nn.elu(layer(nodes, edges, senders, receivers))
        return tf.reduce_mean(tf.square(h @ head - y))

    variables = [layer.value, layer.edge, head]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (nodes, edges, y)}
