# mypy: ignore-errors
import tensorflow as tf


def wrap(x, period):
    """x modulo a learned period; the floor only counts the turns."""
    return x - period * tf.floor(x / period)


def build():
    tf.random.set_seed(140)
    period = tf.Variable(1.7, name="period")
    warp = tf.Variable(0.9, name="warp")
    harmonics = tf.Variable(tf.random.normal([4], stddev=0.5), name="harmonics")
    t, y = tf.linspace(0.1, 9.7, 30), tf.random.normal([30])

    def loss_fn(t, y):
        phase = wrap(warp * t, period)
        sign = tf.sign(phase - 0.8)
        sawtooth = (phase - 0.8) * sign
        waves = tf.stack([phase, phase**2, sawtooth, tf.ones_like(phase)], axis=1)
        return tf.reduce_mean(tf.square(tf.linalg.matvec(waves, harmonics) - y))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [period, warp, harmonics], "args": (t, y)}
