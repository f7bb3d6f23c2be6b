# mypy: ignore-errors
import tensorflow as tf


def code(signal, gain, reflection, step):
    """Differential coder: every residual is rounded to a multiple of the step, then decoded at once."""
    length = tf.shape(signal)[0]

    def body(t, previous, decoded):
        predicted = reflection * previous
        residual = gain * signal[t] - predicted
        level = tf.math.rint(residual / 0.25) * step
        now = predicted + level
        return t + 1, now, decoded.write(t, now)

    decoded = tf.TensorArray(tf.float32, size=12, element_shape=[3])
    _, _, decoded = tf.while_loop(lambda t, *_: t < length, body, (0, tf.zeros([3]), decoded))
    return decoded.stack()


def build():
    tf.random.set_seed(13)
    gain = tf.Variable([0.9, 1.1, 1.3], name="gain")
    reflection = tf.Variable([0.5, 0.4, 0.6], name="reflection")
    step = tf.Variable(0.24, name="step")
    signal = tf.random.normal([12, 3])

    def loss_fn(signal):
        return tf.reduce_mean(tf.square(code(signal, gain, reflection, step) - signal))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [gain, reflection, step], "args": (signal,)}
