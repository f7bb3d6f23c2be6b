# mypy: ignore-errors
import tensorflow as tf


class NodeBuffer(tf.Module):
    """Memory of a temporal graph network: the states of all nodes between events."""

    def __init__(self, nodes, width):
        super().__init__("buffer")
        self.states = tf.Variable(tf.zeros([nodes, width]), trainable=False, name="states")

    def update(self, which, states):
        self.states.scatter_nd_update(which[:, None], states)

    def read(self, which):
        return tf.gather(self.states, which)


def build():
    tf.random.set_seed(94)
    buffer = NodeBuffer(8, 4)
    message = tf.Variable(tf.random.normal([5, 4], stddev=0.5), name="message")
    decay = tf.Variable(tf.zeros([4]), name="decay")
    link = tf.Variable(tf.random.normal([4, 4], stddev=0.5), name="link")
    source, target = tf.constant([0, 3, 5, 6]), tf.constant([3, 5, 6, 1])
    features, label = tf.random.normal([4, 5]), tf.constant([1.0, 0.0, 1.0, 1.0])

    @tf.function
    def observe(source, features):
        old = buffer.read(source)
        buffer.update(source, tf.sigmoid(decay) * old + tf.tanh(features @ message))

    def loss_fn(source, target, features, label):
        observe(source, features)
        a, b = buffer.read(source), buffer.read(target)
        score = tf.reduce_sum((a @ link + 0.1) * (b + 0.1), axis=1)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=score))

    args = (source, target, features, label)
    return {"kind": "function", "loss_fn": loss_fn, "variables": [message, decay, link], "args": args}
