"""Roots, logarithms, quotients and exponentials at values where they or their derivatives are not finite."""

from __future__ import annotations

from tests.recordings.programs.text import loss

ROOTS = {
    "a standard deviation of equal values": loss("return tf.math.reduce_std(w * 0.0)"),
    "a standard deviation along an axis": loss("return tf.reduce_sum(tf.math.reduce_std(rows * w[0] * 0.0, axis=-1))"),
    "a root as a power": loss("return tf.reduce_sum((w - w) ** 0.5)"),
    "a power of zero": loss("return tf.reduce_sum(tf.pow(w - w, 0.3))"),
    "a power of zero, by name": loss("return tf.reduce_sum(tf.pow(y=0.3, x=w - w))"),
    "a norm of another order": loss("return tf.norm(w - w, ord=3)"),
    "a norm of order two": loss("return tf.norm(w - w, 2)"),
    "a root of zero in a variable": loss("return tf.reduce_sum(tf.sqrt(tf.nn.relu(w - 1.4)))"),
    "a reciprocal root": loss("return tf.reduce_sum(tf.math.rsqrt(tf.nn.relu(w - 1.4)) * tf.nn.relu(w - 1.4))"),
}

LOGARITHMS = {
    "the logarithm of a softmax": loss("return -tf.reduce_sum(tf.math.log(tf.nn.softmax(w * 200.0)))"),
    "the logarithm of a softmax along an axis": loss(
        "p = tf.nn.softmax(rows * w * 300.0, axis=-1)", "return -tf.reduce_sum(tf.math.log(p))"
    ),
    "the logarithm of a sigmoid": loss("return -tf.reduce_sum(tf.math.log(tf.sigmoid(-w * 200.0)))"),
    "the logarithm of a single number": loss("return tf.math.log(w[0] - w[0])"),
    "logarithms of zero and of others": loss(
        "return tf.reduce_sum(tf.math.log(w - w) + tf.math.log(tf.exp(w)) + tf.math.log(2.0) + tf.math.log(w + 1e-6))"
    ),
    "logarithms inside each other": loss("return tf.reduce_sum(tf.math.log(tf.math.log(w / w)))"),
    "the logarithm of one plus something": loss("return tf.reduce_sum(tf.math.log1p(w * 0.0 - 1.0))"),
    "both logarithms of a sigmoid": loss(
        "p = tf.sigmoid(w * 100.0)",
        "return -tf.reduce_mean(allowed_share * tf.math.log(p) + (1.0 - allowed_share) * tf.math.log(1.0 - p))",
    ),
    "an entropy": loss("p = tf.nn.relu(w - 1.0)", "return -tf.reduce_sum(p * tf.math.log(p))"),
}

LOGARITHMS["both logarithms of a sigmoid"] = (
    "allowed_share = tf.constant([1.0, 0.0, 0.0])\n" + LOGARITHMS["both logarithms of a sigmoid"]
)

QUOTIENTS = {
    "zero divided by zero": loss("return tf.reduce_sum((w - w) / (w - w))"),
    "a division as a function": loss("return tf.reduce_sum(tf.divide(w - w, w - w))"),
    "a mean of nothing": loss("return tf.reduce_mean(tf.boolean_mask(w * x, x > 9.0))"),
    "a mean of nothing under a name": loss("kept = tf.boolean_mask(w * x, x > 9.0)", "return tf.reduce_mean(kept)"),
    "a mean of nothing along an axis": loss("return tf.reduce_mean(tf.boolean_mask(w * x, x > 9.0), axis=0)"),
    "a mean of nothing in a lambda": "loss = lambda: tf.reduce_mean(tf.boolean_mask(w * x, x > 9.0))\n",
    "a unit vector of zero": loss("return tf.reduce_sum(tf.linalg.normalize(w - w)[0])"),
    "a unit vector under a name": loss(
        "unit, norm = tf.linalg.normalize(w - w, axis=-1)", "return tf.reduce_sum(unit)"
    ),
    "a unit vector and its norm": loss(
        "unit, norm = tf.linalg.normalize(w - w, axis=-1)", "return tf.reduce_sum(unit) + tf.reduce_sum(norm)"
    ),
    "a unit vector by the sum": loss("v = w - w", "return tf.reduce_sum(tf.linalg.normalize(v, 1)[0])"),
    "a unit vector by another norm": loss("v = w - w", "return tf.reduce_sum(tf.linalg.normalize(v, ord=3)[0])"),
    "a normalised zero vector": loss("return tf.reduce_sum(tf.math.l2_normalize(w * 1e-20) * x)"),
    "a normalised zero vector along an axis": loss(
        "return tf.reduce_sum(tf.nn.l2_normalize(rows * w * 1e-20, axis=-1) * rows)"
    ),
}

EXPONENTIALS = {
    "a hyperbolic cosine": loss("return tf.reduce_sum(tf.cosh(w * 200.0))"),
    "a hyperbolic sine": loss("return tf.reduce_sum(tf.sinh(w * 200.0))"),
    "an exponential less one": loss("return tf.reduce_sum(tf.math.expm1(w * 200.0))"),
    "an exponential plus two": loss("return tf.reduce_sum(tf.math.log(2.0 + tf.exp(w * 200.0)))"),
    "a softplus": loss("return tf.reduce_sum(tf.math.log1p(tf.exp(w * 200.0)))"),
    "a softplus by sums": loss("return tf.reduce_sum(tf.math.log(1.0 + tf.exp(w * 200.0)))"),
    "a softmax without an axis": loss("return tf.reduce_sum(x * tf.exp(w * 200.0) / tf.reduce_sum(tf.exp(w * 200.0)))"),
    "a softmax in one expression": loss(
        "return tf.reduce_sum(x * (tf.exp(w * 200.0) / tf.reduce_sum(tf.exp(w * 200.0), axis=-1, keepdims=True)))"
    ),
    "a softmax under a name": loss(
        "e = tf.exp(w * 200.0)",
        "total = tf.reduce_sum(e, axis=-1, keepdims=True)",
        "return tf.reduce_sum(x * (e / total))",
    ),
    "a softmax under a name without an axis": loss(
        "e = tf.exp(w * 200.0)", "return tf.reduce_sum(x * (e / tf.reduce_sum(e)))"
    ),
    "an exponential over another total": loss(
        "e = tf.exp(w * 200.0)", "return tf.reduce_sum(x * (e / tf.reduce_sum(x)))"
    ),
    "a power that overflows": loss("return tf.reduce_sum(tf.pow(10.0, w * 100.0))"),
}
