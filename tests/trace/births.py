"""Programs whose loss or gradient is not finite, each with its repaired twin: where it begins is marked `# born`.

Each function returns a loss function, its arguments and its variables. `EXPECTED` holds what is to be said of it: the
cause, the op's type and the rows of the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

Program = tuple[Any, tuple[Any, ...], list[Any]]


def _dense(*shape: int, scale: float = 0.3, seed: int = 0) -> tf.Variable:
    return tf.Variable(np.random.default_rng(seed).normal(0, scale, shape).astype("float32"), name=f"w{seed}")


def _rows(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, shape).astype("float32")


def exponential_far_below_the_cross_entropy(*, fixed: bool = False) -> Program:
    """Rows 5 and 40 have a raw feature of a few thousand; the loss is TensorFlow's stable cross entropy."""
    first, second, head = _dense(6, 8, seed=1), _dense(8, 8, seed=2), _dense(8, 1, seed=3)
    x, y = _rows(64, 6), (np.arange(64) % 2).astype("float32")[:, None]
    x[[5, 40], 2] = 4000.0

    def loss_fn(x: Any, y: Any) -> Any:
        hidden = tf.nn.leaky_relu(x @ first)
        score = tf.abs(hidden @ second)
        weights = tf.exp(tf.minimum(score, 20.0)) if fixed else tf.exp(score)  # born
        mixed = tf.nn.l2_normalize(hidden * weights, axis=-1)
        logits = mixed @ head
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, logits))

    return loss_fn, (tf.constant(x), tf.constant(y)), [first, second, head]


def attention_over_a_masked_row(*, fixed: bool = False) -> Program:
    """Example 7 is padding throughout."""
    query, key, head = _dense(4, 4, seed=1), _dense(4, 4, seed=2), _dense(4, 3, seed=3)
    x, keep = _rows(16, 5, 4), np.ones((16, 5), bool)
    keep[7] = False
    labels = np.arange(16) % 3

    def loss_fn(x: Any, keep: Any, labels: Any) -> Any:
        scores = tf.matmul(x @ query, x @ key, transpose_b=True)
        scores += tf.where(keep, 0.0, -1e9 if fixed else -np.inf)[:, None, :]
        weights = tf.nn.softmax(scores, axis=-1)  # born
        pooled = tf.reduce_mean(tf.matmul(weights, x), axis=1)
        logits = pooled @ head
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    return loss_fn, (tf.constant(x), tf.constant(keep), tf.constant(labels)), [query, key, head]


def certain_probability(*, fixed: bool = False) -> Program:
    """The sigmoid is exactly 1 in row 3."""
    kernel = tf.Variable([[1.0], [0.5]], name="kernel")
    x = _rows(32, 2)
    x[3] = [60.0, 10.0]
    y = (np.arange(32) % 2 == 0).astype("float32")[:, None]

    def loss_fn(x: Any, y: Any) -> Any:
        p = tf.sigmoid(x @ kernel)
        p = tf.clip_by_value(p, 1e-6, 1 - 1e-6) if fixed else p
        positive = y * tf.math.log(p)
        negative = (1 - y) * tf.math.log(1 - p)  # born
        return -tf.reduce_mean(positive + negative)

    return loss_fn, (tf.constant(x), tf.constant(y)), [kernel]


def rate_of_no_visits(*, fixed: bool = False) -> Program:
    """What is predicted is made of data alone, and is 0 / 0 in rows 2 and 9."""
    kernel = _dense(3, 1, seed=1)
    x, views, visits = _rows(20, 3), np.abs(_rows(20, 1)), np.abs(_rows(20, 1, seed=2)) + 1
    views[[2, 9]] = visits[[2, 9]] = 0

    def loss_fn(x: Any, views: Any, visits: Any) -> Any:
        rate = tf.math.divide_no_nan(views, visits) if fixed else views / visits  # born
        known = tf.where(views >= 0, rate, tf.zeros_like(rate))
        return tf.reduce_mean(tf.square(x @ kernel - known))

    return loss_fn, tuple(map(tf.constant, (x, views, visits))), [kernel]


def mean_of_an_empty_selection(*, fixed: bool = False) -> Program:
    """No row is labelled."""
    kernel = _dense(3, 1, seed=1)
    x, y = _rows(20, 3), np.full(20, -1.0, "float32")

    def loss_fn(x: Any, y: Any) -> Any:
        error = tf.square((x @ kernel)[:, 0] - y)
        chosen = tf.boolean_mask(error, y >= (-1.5 if fixed else 0))
        supervised = tf.reduce_mean(chosen)  # born
        return supervised + 0.01 * tf.reduce_sum(tf.square(kernel))

    return loss_fn, (tf.constant(x), tf.constant(y)), [kernel]


def loop_over_nothing(*, fixed: bool = False) -> Program:
    """A sequence of no steps."""
    kernel = _dense(3, 1, seed=1)
    x = _rows(20, 3)

    def loss_fn(x: Any, steps: Any) -> Any:
        total, count = tf.zeros([20, 1]), 0.0
        for step in tf.range(steps):
            total += x @ kernel * tf.cast(step + 1, tf.float32)
            count += 1.0
        mean = tf.math.divide_no_nan(total, count) if fixed else total / count  # born
        return tf.reduce_mean(tf.square(mean - 1.0)) + 0.1 * tf.reduce_sum(tf.abs(kernel))

    return loss_fn, (tf.constant(x), tf.constant(0)), [kernel]


def variance_of_a_posterior(*, fixed: bool = False) -> Program:
    """The logarithm of a variance is above 88 in row 3."""
    mean, spread = _dense(4, 2, seed=1), _dense(4, 2, seed=2)
    x = _rows(12, 4)
    x[3] = [300.0, -300.0, 200.0, 100.0]

    def loss_fn(x: Any) -> Any:
        mu, logvar = x @ mean, tf.abs(x @ spread)
        logvar = tf.minimum(logvar, 10.0) if fixed else logvar
        variance = tf.exp(logvar)  # born
        kl = 0.5 * tf.reduce_sum(variance + tf.square(mu) - 1.0 - logvar, axis=-1)
        return tf.reduce_mean(kl)

    return loss_fn, (tf.constant(x),), [mean, spread]


def deviation_by_hand(*, fixed: bool = False) -> Program:
    """The mean of squares less the square of the mean is a little less than zero, where all
    numbers of a row are the same: rows 0 and 2."""
    scale = tf.Variable(1.0, name="scale")
    x = np.repeat(np.asarray([[1000.1], [3.0], [777.7], [0.3]], "float32"), 7, axis=1)
    x[[1, 3]] += np.arange(7, dtype="float32")

    def loss_fn(x: Any) -> Any:
        v = x * scale
        variance = tf.reduce_mean(v * v, axis=-1) - tf.reduce_mean(v, axis=-1) ** 2 - 1e-6
        deviation = tf.sqrt(tf.maximum(variance, 1e-6) if fixed else variance)  # born
        return tf.reduce_mean(deviation)

    return loss_fn, (tf.constant(x),), [scale]


def power_of_residuals(*, fixed: bool = False) -> Program:
    """Squares of squares overflow in row 4."""
    kernel = _dense(3, 1, seed=1)
    x = _rows(10, 3)
    x[4] = 1e13

    def loss_fn(x: Any) -> Any:
        error = tf.square(x @ kernel - 1.0)
        error = tf.minimum(error, 1e6) if fixed else error
        weighted = tf.square(error)  # born
        return tf.reduce_mean(tf.tanh(weighted) - weighted * 1e-3)

    return loss_fn, (tf.constant(x),), [kernel]


def temperature_of_zero(*, fixed: bool = False) -> Program:
    """What the logits are divided by has become zero."""
    kernel, temperature = _dense(3, 4, seed=1), tf.Variable(1e-2 if fixed else 0.0, name="temperature")
    x, labels = _rows(10, 3), np.arange(10) % 4

    def loss_fn(x: Any, labels: Any) -> Any:
        logits = x @ kernel / temperature  # born
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))

    return loss_fn, (tf.constant(x), tf.constant(labels)), [kernel, temperature]


def feature_of_zero_in_three_rows(*, fixed: bool = False) -> Program:
    """Column 4 is zero in three rows of 512, and a logarithm is taken of it."""
    kernel = _dense(5, 1, seed=1)
    x = np.abs(_rows(512, 5)) + 0.1
    x[[17, 203, 400], 4] = 0.0

    def loss_fn(x: Any) -> Any:
        prices = tf.maximum(x, 1e-3) if fixed else x
        features = tf.math.log(prices)  # born
        return tf.reduce_mean(tf.square(features @ kernel))

    return loss_fn, (tf.constant(x),), [kernel]


def length_of_nothing(*, fixed: bool = False) -> Program:
    """The loss is finite, and the slope of a length of zero is not: rows 6 and 11."""
    kernel = _dense(4, 3, seed=1)
    x = _rows(16, 4)
    x[[6, 11]] = 0.0

    def loss_fn(x: Any) -> Any:
        squares = tf.reduce_sum(tf.square(x @ kernel), axis=-1) + (1e-9 if fixed else 0.0)
        length = tf.sqrt(squares)  # born
        return tf.reduce_mean(tf.square(length - 1.0))

    return loss_fn, (tf.constant(x),), [kernel]


def hidden_logarithm(*, fixed: bool = False) -> Program:
    """`tf.where` hides the value and not the slope: rows whose sum is zero."""
    kernel = _dense(4, 1, seed=1)
    x = _rows(16, 4)
    x[[2, 13]] = 0.0

    def loss_fn(x: Any) -> Any:
        size = tf.abs(x @ kernel)
        size = tf.where(size > 0, size, tf.ones_like(size)) if fixed else size
        logarithm = tf.math.log(size)  # born
        return tf.reduce_mean(tf.where(size > 0, logarithm, tf.zeros_like(logarithm)))

    return loss_fn, (tf.constant(x),), [kernel]


def scores_masked_by_a_product(*, fixed: bool = False) -> Program:
    """What is kept is zero times minus infinity."""
    query = _dense(4, 4, seed=1)
    x, keep = _rows(6, 5, 4), np.ones((6, 5), "float32")
    keep[2, 3:] = 0.0

    def loss_fn(x: Any, keep: Any) -> Any:
        scores = tf.matmul(x @ query, x, transpose_b=True)
        mask = (1 - keep) * (-1e9 if fixed else -np.inf)  # born
        return tf.reduce_mean(tf.matmul(tf.nn.softmax(scores + mask[:, None, :]), x))

    return loss_fn, (tf.constant(x), tf.constant(keep)), [query]


def target_with_a_gap(*, fixed: bool = False) -> Program:
    """The targets are no argument, and row 7 of them is missing."""
    kernel = _dense(4, 1, seed=1)
    x, y = _rows(16, 4), _rows(16, 1, seed=2)
    y[7] = 0.0 if fixed else np.nan
    targets = tf.constant(y)

    def loss_fn(x: Any) -> Any:
        return tf.reduce_mean(tf.square(x @ kernel - targets))  # born

    return loss_fn, (tf.constant(x),), [kernel]


def exponential_in_a_function(*, fixed: bool = False) -> Program:
    """The values inside of a compiled function are not seen, those around it are."""
    kernel = _dense(4, 1, seed=1)
    x = _rows(16, 4)
    x[3] = 2000.0

    @tf.function
    def rate(hidden: Any) -> Any:
        hidden = tf.minimum(hidden, 10.0) if fixed else hidden
        return tf.exp(hidden)  # born

    def loss_fn(x: Any) -> Any:
        rates = rate(tf.abs(x @ kernel))
        logits = rates - tf.reduce_mean(rates)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(tf.zeros_like(logits), logits))

    return loss_fn, (tf.constant(x),), [kernel]


EXPECTED: dict[Any, tuple[str, str, tuple[int, ...] | None]] = {
    exponential_far_below_the_cross_entropy: ("exp_overflow", "Exp", (5, 40)),
    attention_over_a_masked_row: ("softmax_all_masked", "Softmax", (7,)),
    certain_probability: ("log_zero", "Log", (3,)),
    rate_of_no_visits: ("zero_over_zero", "RealDiv", (2, 9)),
    mean_of_an_empty_selection: ("zero_over_zero", "Mean", None),
    loop_over_nothing: ("zero_over_zero", "RealDiv", None),
    variance_of_a_posterior: ("exp_overflow", "Exp", (3,)),
    deviation_by_hand: ("sqrt_at_zero", "Sqrt", (0, 2)),
    power_of_residuals: ("exploding_recurrence", "Square", (4,)),
    temperature_of_zero: ("zero_over_zero", "RealDiv", None),
    feature_of_zero_in_three_rows: ("log_zero", "Log", (17, 203, 400)),
    length_of_nothing: ("sqrt_at_zero", "Sqrt", (6, 11)),
    scores_masked_by_a_product: ("not_finite", "Mul", None),
    target_with_a_gap: ("nonfinite_input", "Sub", (7,)),
    exponential_in_a_function: ("exp_overflow", "Exp", (3,)),
    hidden_logarithm: ("where_inactive_branch", "Log", (2, 13)),
}
