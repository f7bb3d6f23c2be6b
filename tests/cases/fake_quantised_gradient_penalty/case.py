# mypy: ignore-errors
import tensorflow as tf


def quantised_score(x, w1, w2):
    h = tf.quantization.fake_quant_with_min_max_vars(tf.tanh(x @ w1), -1.0, 1.0)
    return tf.square(h) @ w2


def build():
    tf.random.set_seed(62)
    w1 = tf.Variable(tf.random.normal([4, 6], stddev=0.5), name="w1")
    w2 = tf.Variable(tf.random.normal([6, 1], stddev=0.5), name="w2")
    x = tf.random.normal([8, 4])

    @tf.function
    def sensitivity(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            score = tf.reduce_sum(quantised_score(x, w1, w2))
        return tape.gradient(score, x)

    def loss_fn(x):
        """Robustness: small changes of the input should change little."""
        return tf.reduce_mean(tf.reduce_sum(tf.square(sensitivity(x)), axis=1))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [w1, w2], "args": (x,)}
