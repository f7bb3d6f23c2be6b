# mypy: ignore-errors
import tensorflow as tf


def softplus(x, limit=20.0):
    """Linear beyond the limit, to be safe from overflow."""
    return tf.where(x > limit, x, tf.math.log(1.0 + tf.exp(tf.minimum(x, limit))))


class Intensity(tf.Module):
    """Self-exciting process: rate of events after earlier ones, by their marks."""

    def __init__(self):
        super().__init__(name="hawkes")
        self.base = tf.Variable(0.2, name="base")
        self.jump = tf.Variable([0.6, 1.1, 0.4], name="jump")
        self.decay = tf.Variable([0.5, 0.9, 0.2], name="decay")

    def raw(self, marks):
        kernel = self.jump * (1.0 - tf.exp(-self.decay * marks[:, None]))
        return self.base + tf.reduce_sum(kernel * marks[:, None])

    def rates(self, histories):
        return softplus(tf.map_fn(self.raw, histories))


def build():
    tf.random.set_seed(61)
    model = Intensity()
    histories = tf.random.uniform([6, 5], 0.0, 3.0)
    burst = tf.fill([1, 5], 30.0)  # five strong events in a row

    def loss_fn(histories):
        rates = model.rates(histories)
        return tf.reduce_mean(rates - tf.math.log(rates))

    args = (tf.concat([histories, burst], axis=0),)
    return {"kind": "function", "loss_fn": loss_fn, "variables": [model.base, model.jump, model.decay], "args": args}
