# mypy: ignore-errors
import numpy as np
import tensorflow as tf


def build():
    rng = np.random.default_rng(506)
    log_q = tf.Variable(-2.0, name="log_q")
    log_r = tf.Variable(-1.0, name="log_r")
    gate = tf.Variable(9.0, name="gate")
    drift = tf.Variable(0.05, name="drift")
    truth = np.cumsum(0.1 + 0.2 * rng.normal(size=24))
    seen = truth + 0.4 * rng.normal(size=24)
    seen[[5, 13]] += 8.0  # two outliers
    z = tf.constant(seen, tf.float32)

    def loss_fn(z):
        m, p = tf.constant(0.0), tf.constant(1.0)
        nll = tf.constant(0.0)
        for t in range(24):
            m, p = m + drift, p + tf.exp(log_q)
            s = p + tf.exp(log_r)
            innovation = z[t] - m
            d2 = tf.square(innovation) / s
            inlier = tf.sigmoid(gate - d2)
            gain = inlier * p / s
            nll += inlier * 0.5 * (d2 + tf.math.log(s)) + (1.0 - inlier) * 4.0
            m, p = m + gain * innovation, (1.0 - gain) * p
        return nll / 24.0

    return {"kind": "function", "loss_fn": loss_fn, "variables": [log_q, log_r, gate, drift], "args": (z,)}
