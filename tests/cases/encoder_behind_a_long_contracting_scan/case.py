# mypy: ignore-errors
import tensorflow as tf


class Summariser(tf.Module):
    """Encodes a document's title into the first state of a reader that then sees the whole text."""

    def __init__(self, n_in, n):
        super().__init__(name="summariser")
        init = tf.random_normal_initializer(stddev=0.12, seed=2)
        self.title = tf.Variable(init([n_in, n]), name="title_encoder")
        self.kernel = tf.Variable(init([n_in, n]), name="reader_kernel")
        self.recurrent = tf.Variable(init([n, n]), name="reader_recurrent")
        self.out = tf.Variable(init([n, 1]), name="readout")

    def step(self, state, token):
        return tf.nn.tanh(token @ self.kernel + state @ self.recurrent)

    def __call__(self, title, text):
        start = tf.nn.tanh(title @ self.title)
        states = tf.scan(self.step, tf.transpose(text, [1, 0, 2]), initializer=start)
        return states[-1] @ self.out


def build():
    tf.random.set_seed(41)
    model = Summariser(6, 8)
    title, text = tf.random.normal([4, 6]), tf.random.normal([4, 40, 6])
    y = tf.random.normal([4, 1])

    def loss_fn(title, text, y):
        return tf.reduce_mean(tf.square(model(title, text) - y))

    variables = [model.title, model.kernel, model.recurrent, model.out]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (title, text, y)}
