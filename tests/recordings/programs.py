"""Programs of a few lines that `record` runs: each reaches another form of edit, or a reason for not offering one.

Each defines a function `loss` of the variable `w`, or of those in the list `variables`; or a compiled `model` and its
`data`; or a training step `step`, which is called twice. What is said about each, with the exact text of its edits, is
in `expected/programs.txt`.
"""

from __future__ import annotations

HEAD = """
import tensorflow as tf

w = tf.Variable([0.2, 1.4, 2.6], name="w")
x, y = tf.constant([1.0, 2.0, 3.0]), tf.constant([0.5, 0.1, -0.4])
rows = tf.constant([[1.0, 0.2, 0.3], [0.1, 2.0, 1.0]])
allowed = tf.constant([True, False, True])
"""


def _loss(*lines: str) -> str:
    return "def loss():\n" + "".join(f"    {line}\n" for line in lines)


_COMPARED = {
    "both of two comparisons": _loss("return tf.reduce_sum(tf.cast((w > 1.0) & (w < 2.0), tf.float32) * x)"),
    "both of two, as functions": _loss(
        "return tf.reduce_sum(tf.cast(tf.logical_and(w > 1.0, w <= 2.0), tf.float32) * x)"
    ),
    "one of two comparisons": _loss(
        "return tf.reduce_sum(tf.cast(tf.logical_or(tf.less(w, 1.0), tf.greater_equal(w, 2.0)), tf.float32) * x)"
    ),
    "not a comparison": _loss("return tf.reduce_sum(tf.cast(~(w > 1.0), tf.float32) * x)"),
    "not a comparison, as a function": _loss(
        "return tf.reduce_sum(tf.cast(tf.logical_not(tf.greater(w, 1.0)), tf.float32) * x)"
    ),
    "a comparison or a mask of the data": _loss("return tf.reduce_sum(tf.cast((w > 1.0) | allowed, tf.float32) * x)"),
    "a comparison and a mask that is computed there": _loss(
        "return tf.reduce_sum(tf.cast((w > 1.0) & tf.greater(x, y), tf.float32) * x)"
    ),
    "a comparison and what is no condition": _loss(
        "return tf.reduce_sum(tf.cast((w > 1.0) & tf.constant([True, True, False]), tf.float32) * x)"
    ),
    "not what is no comparison": _loss(
        "on = tf.math.is_finite(tf.math.log(w - 1.0))",
        "return tf.reduce_sum(tf.cast(~on & (w > 0.0), tf.float32) * x)",
    ),
    "equal numbers": _loss("return tf.reduce_sum(tf.cast(tf.equal(w, 1.0), tf.float32) * x)"),
    "different numbers": _loss("return tf.reduce_sum(tf.cast(w != 1.0, tf.float32) * x)"),
    "whole numbers that are compared": _loss(
        "level, most = tf.cast(w * 3.0, tf.int32), tf.constant([1, 2, 9])",
        "return tf.reduce_sum(tf.cast(level > most, tf.float32) * x)",
    ),
    "a whole number under a name": _loss(
        "level = tf.cast(w * 3.0, tf.int32)", "return tf.reduce_sum(tf.cast(level > 2, tf.float32) * x)"
    ),
    "rounded values that are compared": _loss("return tf.reduce_sum(tf.cast(tf.round(w * 3.0) < 5.0, tf.float32) * x)"),
    "a comparison cast to an integer": _loss(
        "return tf.reduce_sum(tf.cast(tf.cast(w > 1.0, tf.int32), tf.float32) * x)"
    ),
    "a comparison that a function returns": "def on(v):\n    return v > 1.0\n"
    + _loss("return tf.reduce_sum(tf.cast(on(w), tf.float32) * x)"),
    "a comparison with zero on the left": _loss("return tf.reduce_sum(tf.cast(0.0 < w, tf.float32) * x)"),
    "a comparison that is an argument": "def counted(on):\n    return tf.reduce_sum(tf.cast(on, tf.float32) * x)\n"
    + _loss("return counted(w > 1.0)"),
    "a chain of comparisons": _loss("return tf.reduce_sum(tf.where(tf.logical_and(w > 1.0, x > y), x, y))"),
}

_MASKED = {
    "values along an axis": _loss("return tf.reduce_sum(tf.boolean_mask(x, w > 1.0, axis=0))"),
    "values by a named mask": _loss("return tf.reduce_sum(tf.boolean_mask(x, mask=w > 1.0))"),
    "a sum of kept values": _loss("kept = tf.boolean_mask(x, w > 1.0)", "return tf.reduce_sum(kept)"),
    "a mean of kept values": _loss("kept = tf.boolean_mask(x, w > 1.0)", "return tf.reduce_mean(kept)"),
    "kept values that are used twice": _loss(
        "kept = tf.boolean_mask(x, w > 1.0)", "return tf.reduce_sum(kept) / tf.norm(kept)"
    ),
    "kept values that are squared first": _loss(
        "kept = tf.boolean_mask(x, w > 1.0)", "return tf.reduce_sum(tf.square(kept))"
    ),
    "kept values in an attribute": "class State: pass\nstate = State()\n"
    + _loss("state.kept = x[w > 1.0]", "return tf.reduce_sum(state.kept)"),
    "a sum along an axis": _loss("return tf.reduce_sum(x[w > 1.0], axis=0)"),
    "the largest of some values": _loss("return tf.reduce_max(x[w > 1.0])"),
    "a mean in a lambda": "loss = lambda: tf.reduce_mean(x[w > 1.0])\n",
    "a mask under a name": _loss("mask = w > 1.0", "return tf.reduce_sum(tf.cast(mask, tf.float32) * x) / 2.0"),
    "a mask under a name, counted": _loss(
        "mask = w > 1.0", "return tf.cast(tf.reduce_sum(tf.cast(mask, tf.int32)), tf.float32)"
    ),
    "a mask that has two values": _loss(
        "mask = w > 1.0",
        "total = tf.reduce_sum(tf.cast(mask, tf.float32))",
        "mask = x > 1.0",
        "return total + tf.reduce_sum(tf.cast(mask, tf.float32))",
    ),
    "a mask that selects": _loss("mask = w > 1.0", "return tf.reduce_sum(tf.boolean_mask(x, mask))"),
    "a mask that chooses": _loss("mask = w > 1.0", "return tf.reduce_sum(tf.where(mask, x, y))"),
    "places where a mask holds": _loss("mask = w > 1.0", "return tf.reduce_sum(tf.cast(tf.where(mask), tf.float32))"),
    "places where a condition holds": _loss("return tf.reduce_sum(tf.cast(tf.where(w > 1.0), tf.float32))"),
    "a choice between two values": _loss("return tf.reduce_sum(tf.where(w > 1.0, x, y))"),
    "a choice between two values in a lambda": "loss = lambda: tf.reduce_sum(tf.where(w > 1.0, x, y))\n",
    "a choice between one and zero": _loss("return tf.reduce_sum(x * tf.where(w > 1.0, 1.0, 0.0))"),
    "a choice between zero and one": _loss("return tf.reduce_sum(x * tf.where(w > 1.0, 0.0, 1.0))"),
    "a mask of a sequence": _loss("return tf.reduce_sum(tf.sequence_mask(tf.cast(w, tf.int32), 4, dtype=tf.float32))"),
    "a mask of one sequence": _loss("return tf.reduce_sum(tf.sequence_mask(w[1], 4, tf.float32))"),
    "a mask of a sequence of any length": _loss(
        "return tf.reduce_sum(tf.cast(tf.sequence_mask(tf.cast(w, tf.int32)), tf.float32))"
    ),
}

_BRANCHES = {
    "branches of a condition": _loss("return tf.cond(w[0] > 0.1, lambda: x[0], lambda: y[0])"),
    "branches by name": "def one():\n    return x[0]\ndef other():\n    return y[0]\n"
    + _loss("return tf.cond(w[0] < 0.1, one, other)"),
    "branches in a lambda": "loss = lambda: tf.cond(w[0] > 0.1, lambda: x[0], lambda: y[0])\n",
    "branches under a named condition": _loss(
        "large = w[0] > 0.1", "return 2.0 * tf.cond(large, lambda: x[0], lambda: y[0])"
    ),
    "branches under a condition that is used twice": _loss(
        "large = w[0] > 0.1",
        "first = tf.cond(large, lambda: x[0], lambda: y[0])",
        "return first + tf.cond(large, lambda: x[1], lambda: y[1])",
    ),
    "branches that are computed": "import functools\n"
    + _loss("return tf.cond(w[0] > 0.1, functools.partial(tf.identity, x[0]), lambda: y[0])"),
    "branches that are computed, under a named condition": "import functools\n"
    + _loss("large = w[0] > 0.1", "return tf.cond(large, functools.partial(tf.identity, x[0]), lambda: y[0])"),
    "one branch of several": _loss(
        "low = tf.cond(x[0] > 0.1, lambda: x[0], lambda: y[0])",
        "return low + tf.cond(tf.reduce_all(w > 0.1), lambda: x[0], lambda: y[0])",
    ),
    "an if that returns": _loss("if w[0] > 0.1:", "    return x[0]", "else:", "    return y[0]"),
    "an if that returns early": _loss("if w[0] > 0.1:", "    return x[0] * 2.0", "return y[0]"),
    "an if that assigns": _loss(
        "if w[0] > 0.1:", "    value = x[0] - y[0]", "else:", "    value = y[0]", "return value * 2.0"
    ),
    "an if that assigns again": _loss("value = x[0]", "if w[0] > 0.1:", "    value = x[0] - y[0]", "return value"),
    "an if that assigns two names": _loss(
        "if w[0] > 0.1:", "    a = x[0]", "    b = x[1]", "else:", "    a = y[0]", "    b = y[1]", "return a + b"
    ),
    "an if that assigns different names": _loss(
        "a, b = x[0], y[0]", "if w[0] > 0.1:", "    a = x[1]", "else:", "    b = y[1]", "return a + b"
    ),
    "an if of what is no comparison": _loss(
        "if tf.reduce_any(w > 0.1):", "    value = x[0]", "else:", "    value = y[0]", "return value"
    ),
    "an if on one line": _loss("value = x[0]", "if w[0] > 0.1: value = y[0]", "return value"),
    "a value by an if in an expression": _loss("return x[0] if w[0] > 0.1 else y[0]"),
}

_ROOTS = {
    "a standard deviation of equal values": _loss("return tf.math.reduce_std(w * 0.0)"),
    "a standard deviation along an axis": _loss("return tf.reduce_sum(tf.math.reduce_std(rows * w[0] * 0.0, axis=-1))"),
    "a root as a power": _loss("return tf.reduce_sum((w - w) ** 0.5)"),
    "a power of zero": _loss("return tf.reduce_sum(tf.pow(w - w, 0.3))"),
    "a power of zero, by name": _loss("return tf.reduce_sum(tf.pow(y=0.3, x=w - w))"),
    "a norm of another order": _loss("return tf.norm(w - w, ord=3)"),
    "a norm of order two": _loss("return tf.norm(w - w, 2)"),
    "a root of zero in a variable": _loss("return tf.reduce_sum(tf.sqrt(tf.nn.relu(w - 1.4)))"),
    "a reciprocal root": _loss("return tf.reduce_sum(tf.math.rsqrt(tf.nn.relu(w - 1.4)) * tf.nn.relu(w - 1.4))"),
}

_LOGARITHMS = {
    "the logarithm of a softmax": _loss("return -tf.reduce_sum(tf.math.log(tf.nn.softmax(w * 200.0)))"),
    "the logarithm of a softmax along an axis": _loss(
        "p = tf.nn.softmax(rows * w * 300.0, axis=-1)", "return -tf.reduce_sum(tf.math.log(p))"
    ),
    "the logarithm of a sigmoid": _loss("return -tf.reduce_sum(tf.math.log(tf.sigmoid(-w * 200.0)))"),
    "the logarithm of a single number": _loss("return tf.math.log(w[0] - w[0])"),
    "logarithms of zero and of others": _loss(
        "return tf.reduce_sum(tf.math.log(w - w) + tf.math.log(tf.exp(w)) + tf.math.log(2.0) + tf.math.log(w + 1e-6))"
    ),
    "logarithms inside each other": _loss("return tf.reduce_sum(tf.math.log(tf.math.log(w / w)))"),
    "the logarithm of one plus something": _loss("return tf.reduce_sum(tf.math.log1p(w * 0.0 - 1.0))"),
    "both logarithms of a sigmoid": _loss(
        "p = tf.sigmoid(w * 100.0)",
        "return -tf.reduce_mean(allowed_share * tf.math.log(p) + (1.0 - allowed_share) * tf.math.log(1.0 - p))",
    ),
    "an entropy": _loss("p = tf.nn.relu(w - 1.0)", "return -tf.reduce_sum(p * tf.math.log(p))"),
}
_LOGARITHMS["both logarithms of a sigmoid"] = (
    "allowed_share = tf.constant([1.0, 0.0, 0.0])\n" + _LOGARITHMS["both logarithms of a sigmoid"]
)

_QUOTIENTS = {
    "zero divided by zero": _loss("return tf.reduce_sum((w - w) / (w - w))"),
    "a division as a function": _loss("return tf.reduce_sum(tf.divide(w - w, w - w))"),
    "a mean of nothing": _loss("return tf.reduce_mean(tf.boolean_mask(w * x, x > 9.0))"),
    "a mean of nothing under a name": _loss("kept = tf.boolean_mask(w * x, x > 9.0)", "return tf.reduce_mean(kept)"),
    "a mean of nothing along an axis": _loss("return tf.reduce_mean(tf.boolean_mask(w * x, x > 9.0), axis=0)"),
    "a mean of nothing in a lambda": "loss = lambda: tf.reduce_mean(tf.boolean_mask(w * x, x > 9.0))\n",
    "a unit vector of zero": _loss("return tf.reduce_sum(tf.linalg.normalize(w - w)[0])"),
    "a unit vector under a name": _loss(
        "unit, norm = tf.linalg.normalize(w - w, axis=-1)", "return tf.reduce_sum(unit)"
    ),
    "a unit vector and its norm": _loss(
        "unit, norm = tf.linalg.normalize(w - w, axis=-1)", "return tf.reduce_sum(unit) + tf.reduce_sum(norm)"
    ),
    "a unit vector by the sum": _loss("v = w - w", "return tf.reduce_sum(tf.linalg.normalize(v, 1)[0])"),
    "a unit vector by another norm": _loss("v = w - w", "return tf.reduce_sum(tf.linalg.normalize(v, ord=3)[0])"),
    "a normalised zero vector": _loss("return tf.reduce_sum(tf.math.l2_normalize(w * 1e-20) * x)"),
    "a normalised zero vector along an axis": _loss(
        "return tf.reduce_sum(tf.nn.l2_normalize(rows * w * 1e-20, axis=-1) * rows)"
    ),
}

_EXPONENTIALS = {
    "a hyperbolic cosine": _loss("return tf.reduce_sum(tf.cosh(w * 200.0))"),
    "a hyperbolic sine": _loss("return tf.reduce_sum(tf.sinh(w * 200.0))"),
    "an exponential less one": _loss("return tf.reduce_sum(tf.math.expm1(w * 200.0))"),
    "an exponential plus two": _loss("return tf.reduce_sum(tf.math.log(2.0 + tf.exp(w * 200.0)))"),
    "a softplus": _loss("return tf.reduce_sum(tf.math.log1p(tf.exp(w * 200.0)))"),
    "a softplus by sums": _loss("return tf.reduce_sum(tf.math.log(1.0 + tf.exp(w * 200.0)))"),
    "a softmax without an axis": _loss(
        "return tf.reduce_sum(x * tf.exp(w * 200.0) / tf.reduce_sum(tf.exp(w * 200.0)))"
    ),
    "a softmax in one expression": _loss(
        "return tf.reduce_sum(x * (tf.exp(w * 200.0) / tf.reduce_sum(tf.exp(w * 200.0), axis=-1, keepdims=True)))"
    ),
    "a softmax under a name": _loss(
        "e = tf.exp(w * 200.0)",
        "total = tf.reduce_sum(e, axis=-1, keepdims=True)",
        "return tf.reduce_sum(x * (e / total))",
    ),
    "a softmax under a name without an axis": _loss(
        "e = tf.exp(w * 200.0)", "return tf.reduce_sum(x * (e / tf.reduce_sum(e)))"
    ),
    "an exponential over another total": _loss(
        "e = tf.exp(w * 200.0)", "return tf.reduce_sum(x * (e / tf.reduce_sum(x)))"
    ),
    "a power that overflows": _loss("return tf.reduce_sum(tf.pow(10.0, w * 100.0))"),
}

_CHOICES = {
    "a division in a branch": _loss("return tf.reduce_sum(tf.where(x > 1.5, 1.0 / (x - 1.0) * w, w))"),
    "a division by a function in a branch": _loss(
        "return tf.reduce_sum(tf.where(w > 1.0, tf.divide(1.0, w - 0.2), w))"
    ),
    "divisions in both branches": _loss("return tf.reduce_sum(tf.where(w > 1.0, 1.0 / (w - 0.2), 1.0 / (w - 1.4)))"),
    "a root in a branch under a name": _loss(
        "root = tf.sqrt(w - 1.0)", "return tf.reduce_sum(tf.where(w > 1.0, root, w))"
    ),
    "a root in a branch before its condition": _loss(
        "root = tf.sqrt(w - 1.0)", "inside = w > 1.0", "return tf.reduce_sum(tf.where(inside, root, w))"
    ),
    "an angle in a branch": _loss("return tf.reduce_sum(tf.where(tf.abs(w) < 1.0, tf.acos(w), w))"),
    "an exponential of a quotient in a branch": _loss(
        "return tf.reduce_sum(tf.where(w > 1.0, tf.exp(tf.divide(1.0, w - 0.2)), w))",
    ),
    "an exponential in a branch": _loss("return tf.reduce_sum(tf.where(w < 1.0, tf.exp(w * 100.0), w))"),
    "a quotient of an exponential in a branch": _loss(
        "gap = w - 0.2", "inside = gap > 0.5", "return tf.reduce_sum(tf.where(inside, tf.exp(1.0 / gap), w))"
    ),
    "an angle at the end": _loss("return tf.reduce_sum(tf.acos(w / w))"),
    "a hyperbolic angle at the end": _loss("return tf.reduce_sum(tf.math.acosh(w / w))"),
    "an area tangent at the end": _loss("return tf.reduce_sum(tf.math.atanh(w / w))"),
    "a masked row": "HIDDEN = -float('inf')\n"
    + _loss(
        "scores = tf.where(tf.constant([[True] * 3, [False] * 3]), rows * w, HIDDEN)",
        "return tf.reduce_sum(tf.nn.softmax(scores) * rows)",
    ),
    "a masked row by numpy": "import numpy as np\n"
    + _loss(
        "scores = tf.where(tf.constant([[True] * 3, [False] * 3]), rows * w, -np.inf)",
        "return tf.reduce_sum(tf.nn.softmax(scores) * rows)",
    ),
    "a masked row by arithmetic": _loss(
        "scores = rows * w + tf.math.log(tf.constant([[1.0] * 3, [0.0] * 3]))",
        "return tf.reduce_sum(tf.nn.softmax(scores) * rows)",
    ),
}

_POSITIONS = {
    "ranks from the largest": _loss(
        "ranks = tf.argsort(tf.argsort(w * 2.0, direction='DESCENDING'))",
        "return tf.reduce_sum(tf.abs(tf.cast(ranks, tf.float32) - y))",
    ),
    "ranks along the first of two axes": _loss(
        "ranks = tf.argsort(tf.argsort(rows * w, axis=0), axis=0)",
        "return tf.reduce_sum(tf.square(tf.cast(ranks, tf.float32) - 0.4))",
    ),
    "ranks under two names": _loss(
        "order = tf.argsort(w)",
        "ranks = tf.argsort(order)",
        "return tf.reduce_sum(tf.square(tf.cast(ranks - tf.constant([2, 0, 1]), tf.float32)))",
    ),
    "ranks along different axes": _loss(
        "ranks = tf.argsort(tf.argsort(rows * w, axis=0), axis=1)",
        "return tf.reduce_sum(tf.square(tf.cast(ranks, tf.float32) - 0.4))",
    ),
    "ranks along the first of three axes": _loss(
        "ranks = tf.argsort(tf.argsort(rows[None] * w, axis=0), axis=0)",
        "return tf.reduce_sum(tf.square(tf.cast(ranks, tf.float32) - 0.4))",
    ),
    "ranks in a lambda": "loss = lambda: tf.reduce_sum(tf.cast(tf.argsort(tf.argsort(w * 2.0)), tf.float32) * y)\n",
    "ranks that select": _loss("ranks = tf.argsort(tf.argsort(w))", "return tf.reduce_sum(tf.gather(x, ranks) * y)"),
    "an order": _loss("return tf.reduce_sum(tf.gather(x, tf.argsort(w)) * y)"),
    "an order that is used twice": _loss(
        "order = tf.argsort(w)", "return tf.reduce_sum(tf.gather(x, tf.argsort(order)) * tf.gather(y, order))"
    ),
    "the position of the largest": _loss("return tf.cast(tf.argmax(w), tf.float32)"),
    "the position of the smallest in a row": _loss(
        "return tf.reduce_sum(tf.cast(tf.argmin(rows * w, axis=-1), tf.float32))"
    ),
    "the position of the largest under a name": _loss(
        "best = tf.argmax(w * 2.0)", "place = tf.cast(best, tf.float32)", "return tf.square(place - 1.0)"
    ),
    "the position of the largest in a lambda": "loss = lambda: tf.cast(tf.argmax(w * 2.0), tf.float32)\n",
    "the position of the largest by keras": "import keras\n"
    + _loss("return keras.ops.cast(keras.ops.argmax(w * 1.0, axis=-1), 'float32')"),
    "the position of the largest of all, by keras": "import keras\n"
    + _loss("return keras.ops.cast(keras.ops.argmax(w * 1.0), 'float32')"),
    "the negative of a position": _loss("return tf.cast(-tf.argmax(w), tf.float32)"),
    "a position that is compared with others": _loss(
        "return tf.cast(tf.maximum(tf.argmax(w), tf.constant(1, tf.int64)), tf.float32)"
    ),
    "a position in arithmetic under a name": _loss(
        "best = tf.argmax(w)", "return tf.cast(best - tf.constant(1, tf.int64), tf.float32)"
    ),
    "a position in arithmetic in a lambda": "loss = lambda: tf.cast(tf.argmax(w * 2.0) - 1, tf.float32)\n",
    "a position that is used twice": _loss(
        "best = tf.argmax(w)", "return tf.cast(best, tf.float32) + tf.gather(x, best)"
    ),
    "a one-hot choice": _loss("return tf.reduce_sum(tf.one_hot(tf.argmax(w), 3) * x)"),
    "a one-hot choice of the smallest": _loss("return tf.reduce_sum(tf.one_hot(tf.argmin(w * 2.0), 3) * x)"),
    "a one-hot choice under a name": _loss(
        "best = tf.argmax(w * 2.0)", "return tf.reduce_sum(tf.one_hot(best, 3) * x)"
    ),
    "a one-hot choice in a lambda": "loss = lambda: tf.reduce_sum(tf.one_hot(tf.argmax(w * 2.0), 3) * x)\n",
    "a one-hot choice among fewer": _loss("return tf.reduce_sum(tf.one_hot(tf.argmax(w), 2) * y[:2])"),
    "a one-hot draw": _loss("return tf.reduce_sum(tf.one_hot(tf.random.categorical(rows * w, 1)[:, 0], 3) * rows)"),
    "a one-hot draw under a name": _loss(
        "drawn = tf.random.categorical(rows * w, 1)",
        "hot = tf.one_hot(tf.squeeze(drawn, -1), 3)",
        "return tf.reduce_sum(hot * rows)",
    ),
    "a one-hot draw in a lambda": "loss = lambda: tf.reduce_sum("
    "tf.one_hot(tf.random.categorical(rows * w, 1)[:, 0], 3) * rows)\n",
    "a one-hot draw of named logits": _loss(
        "logits = rows * w", "return tf.reduce_sum(tf.one_hot(tf.random.categorical(logits, 1)[:, 0], 3) * rows)"
    ),
    "one-hot draws of several": _loss(
        "return tf.reduce_sum(tf.one_hot(tf.random.categorical(rows * w, 2), 3))"
        " + tf.reduce_sum(tf.one_hot(tf.random.categorical(rows * w, 2), 3)[:, 0] * rows)"
    ),
    "a row that is chosen": _loss("return tf.reduce_sum(tf.gather(rows, tf.argmax(w[:2])))"),
    "a row that is chosen of a batch": _loss(
        "return tf.reduce_sum(tf.gather(rows, tf.argmax(rows * w, axis=-1), batch_dims=1))"
    ),
    "a column that is chosen": _loss("return tf.reduce_sum(tf.gather(rows, tf.argmax(w), axis=1))"),
    "rows that are drawn": _loss("return tf.reduce_sum(tf.gather(x, tf.random.categorical(rows * w, 4)))"),
    "a row that is chosen by keras": "import keras\n"
    + _loss("return keras.ops.sum(keras.ops.take(rows, keras.ops.argmax(w[:2], axis=-1), axis=0))"),
    "an entry that is chosen by keras": "import keras\n"
    + _loss("return keras.ops.sum(keras.ops.take(x, keras.ops.argmax(w * 1.0, axis=-1)))"),
    "a chosen word": "import keras\nembedding = keras.layers.Embedding(3, 2)\n"
    + _loss("return tf.reduce_sum(embedding(tf.argmax(w * 2.0)))"),
    "a chosen word under a name": "import keras\nembedding, count = keras.layers.Embedding(3, 2), 3\n"
    + _loss("word = tf.argmin(w)", "return tf.reduce_sum(embedding(word))"),
    "a chosen word of two": "import keras\nembedding = keras.layers.Embedding(3, 2)\n"
    + _loss("word = tf.argmax(w)", "return tf.reduce_sum(embedding(word)) * tf.reduce_sum(tf.square(embedding(word)))"),
    "a mask of the two largest": _loss(
        "_, chosen = tf.math.top_k(w * 2.0, 2)",
        "return tf.reduce_sum(tf.reduce_sum(tf.one_hot(chosen, 3), axis=0) * x)",
    ),
    "a mask of the largest in a lambda": "loss = lambda: tf.reduce_sum("
    "tf.reduce_sum(tf.one_hot(tf.math.top_k(w * 2.0, 2)[1], 3), axis=0) * x)\n",
    "a mask of the largest, used in parts": _loss(
        "_, chosen = tf.math.top_k(w, 2)", "return tf.reduce_sum(tf.one_hot(chosen, 3) * rows)"
    ),
    "the largest among more": _loss(
        "_, chosen = tf.math.top_k(w, 2)", "return tf.reduce_sum(tf.reduce_sum(tf.one_hot(chosen, 5), axis=0)[:3] * x)"
    ),
    "entries at the largest": _loss("_, chosen = tf.math.top_k(w, 2)", "return tf.reduce_sum(tf.gather(x, chosen))"),
    "a mask of the largest that a function makes": "def mask(chosen):\n"
    "    return tf.reduce_sum(tf.one_hot(chosen, 3), axis=0)\n"
    + _loss("return tf.reduce_sum(mask(tf.math.top_k(w, 2)[1]) * x)"),
    "a learned place in a table": _loss("return tf.reduce_sum(tf.gather(x, tf.cast(w, tf.int32)))"),
    "a learned place that is computed": _loss(
        "return tf.reduce_sum(tf.gather(x, tf.cast(tf.floor(w * 0.9), tf.int32)))"
    ),
    "a learned place in a table of rows": _loss(
        "at = tf.cast(tf.round(w[:2] / 3.0), tf.int32)", "return tf.reduce_sum(tf.gather(rows, at))"
    ),
    "a learned place in a lambda": "loss = lambda: tf.reduce_sum(tf.gather(x, tf.cast(w, tf.int32)))\n",
    "a learned place along another axis": _loss("return tf.reduce_sum(tf.gather(rows, tf.cast(w, tf.int32), axis=1))"),
    "a learned place that another function looks up": "def row(at):\n    return tf.gather(x, at)\n"
    + _loss("return tf.reduce_sum(row(tf.cast(w, tf.int32)))"),
    "a learned place, by keras": "import keras\n"
    + _loss("return keras.ops.sum(keras.ops.take(x, keras.ops.cast(w, 'int32'), axis=0))"),
    "a learned place in rows, by keras": "import keras\n"
    + _loss("return keras.ops.sum(keras.ops.take(rows, keras.ops.cast(w / 3.0, 'int32'), axis=0))"),
    "a learned place in a plane": "plane = tf.reshape(tf.range(36.0), (6, 6))\n"
    + _loss("return tf.gather_nd(plane, tf.cast(w[:2], tf.int32))"),
    "a learned place in a plane of three numbers": "cube = tf.reshape(tf.range(64.0), (4, 4, 4))\n"
    + _loss("return tf.gather_nd(cube, tf.cast(w, tf.int32))"),
    "a learned place in a plane, in a lambda": "plane = tf.reshape(tf.range(36.0), (6, 6))\n"
    "loss = lambda: tf.gather_nd(plane, tf.cast(w[:2], tf.int32))\n",
    "learned places in a picture": "picture = tf.reshape(tf.range(108.0), (6, 6, 3))\n"
    + _loss("at = tf.stack([w, w + 1.0], -1)", "return tf.reduce_sum(tf.gather_nd(picture, tf.cast(at, tf.int32)))"),
    "a bucket": _loss("return tf.reduce_sum(tf.gather(x, tf.searchsorted([0.5, 1.5], w)))"),
    "a bucket of named edges": "edges = tf.constant([0.5, 1.5])\n"
    + _loss("return tf.reduce_sum(tf.gather(x, tf.searchsorted(sorted_sequence=edges, values=w)))"),
    "a histogram": _loss(
        "return tf.reduce_sum(tf.cast(tf.histogram_fixed_width(w, [0.0, 3.0], 4), tf.float32) * tf.range(4.0))"
    ),
    "a histogram of named bounds": "bounds = tf.constant([0.0, 3.0])\n"
    + _loss("return tf.cast(tf.histogram_fixed_width(w, bounds)[0], tf.float32)"),
    "a histogram of computed bounds": _loss(
        "return tf.cast(tf.histogram_fixed_width(w, tf.stack([0.0, 3.0]), 4)[0], tf.float32)"
    ),
    "a count": _loss("return tf.cast(tf.math.count_nonzero(w > 1.0), tf.float32)"),
    "a count of what is not zero": _loss("return tf.cast(tf.math.count_nonzero(w * x), tf.float32)"),
    "a count along an axis": _loss(
        "return tf.reduce_sum(tf.math.count_nonzero(rows * w > 1.0, axis=-1, dtype=tf.float32))"
    ),
    "the right class": _loss(
        "labels = tf.constant([0, 2])",
        "right = tf.equal(tf.argmax(rows * w, axis=-1, output_type=tf.int32), labels)",
        "return tf.reduce_mean(tf.cast(right, tf.float32))",
    ),
    "the right class of one-hot labels": _loss(
        "hot = tf.one_hot([0, 2], 3)",
        "return tf.reduce_mean(tf.cast(tf.argmax(hot, -1) == tf.argmax(rows * w, -1), tf.float32))",
    ),
    "the right class without an axis": _loss(
        "return tf.reduce_mean(tf.cast(tf.equal(tf.argmax(w), tf.constant(1, tf.int64)), tf.float32))"
    ),
    "the right class in a lambda": "labels = tf.constant([0, 2], tf.int64)\n"
    "loss = lambda: tf.reduce_mean(tf.cast(tf.equal(tf.argmax(rows * w, -1), labels), tf.float32))\n",
    "the right class by keras": "import keras\nlabels = tf.constant([0, 2])\n"
    + _loss(
        "scores = rows * w",
        "right = keras.ops.equal(keras.ops.argmax(scores, axis=-1), labels)",
        "return keras.ops.mean(keras.ops.cast(right, 'float32'))",
    ),
    "the right class under a name": _loss(
        "best = tf.argmax(rows * w, -1)",
        "return tf.reduce_mean(tf.cast(tf.equal(best, tf.constant([0, 2], tf.int64)), tf.float32))",
    ),
}


def _methods(choose: str, *others: str) -> str:
    """A class with one method that chooses, and others that take what it chose."""
    return "class Net:\n" + "".join(f"    def {each}\n" for each in (choose, *others)) + "net = Net()\n"


_GATED = _loss("return tf.reduce_sum(net.gates(net.choose(rows * w)) * rows)")

_METHODS = {
    "a choice of the smallest along a given axis": _methods(
        "choose(self, scores):\n        return tf.argmin(scores * 2.0, axis=1)",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3, axis=-1, dtype=tf.float32)",
    )
    + _GATED,
    "a choice along the first of two axes": _methods(
        "choose(self, scores):\n        return tf.argmax(scores)",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 2)",
    )
    + _loss("return tf.reduce_sum(net.gates(net.choose(rows * w)) * tf.transpose(rows))"),
    "a choice of one vector": _methods(
        "choose(self, scores):\n        return tf.argmax(scores)",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3)",
    )
    + _loss("return tf.reduce_sum(net.gates(net.choose(w)) * x)"),
    "a choice that two methods take": _methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3)",
        "looked_up(self, chosen):\n        return tf.gather(x, chosen)",
    )
    + _loss(
        "chosen = net.choose(rows * w)", "return tf.reduce_sum(net.gates(chosen) * net.looked_up(chosen)[:, None])"
    ),
    "a choice that is not returned alone": _methods(
        "choose(self, scores):\n        best = tf.argmax(scores, axis=-1)\n        return best, scores",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3)",
    )
    + _loss("chosen, scores = net.choose(rows * w)", "return tf.reduce_sum(net.gates(chosen) * rows)"),
    "a choice that is returned in a pair": _methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1), scores",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3)",
    )
    + _loss("return tf.reduce_sum(net.gates(net.choose(rows * w)[0]) * rows)"),
    "a choice that is kept in an attribute": _methods(
        "choose(self, scores):\n        self.best = tf.argmax(scores, axis=-1)",
        "gates(self):\n        return tf.one_hot(self.best, 3)",
    )
    + _loss("net.choose(rows * w)", "return tf.reduce_sum(net.gates() * rows)"),
    "a choice that is taken from an attribute": _methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "gates(self):\n        return tf.one_hot(self.best, 3)",
    )
    + _loss("net.best = net.choose(rows * w)", "return tf.reduce_sum(net.gates() * rows)"),
    "a choice that is used twice there": _methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "gates(self, chosen):\n        print(chosen.shape)\n        return tf.one_hot(chosen, 3)",
    )
    + _GATED,
    "a choice that looks up along the first axis": _methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "looked_up(self, chosen):\n        return tf.gather(x, chosen, axis=0)",
    )
    + _loss("return tf.reduce_sum(net.looked_up(net.choose(rows * w)))"),
    "a choice that looks up in a batch": _methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "looked_up(self, chosen):\n        return tf.gather(rows, chosen, batch_dims=1)",
    )
    + _loss("return tf.reduce_sum(net.looked_up(net.choose(rows * w)))"),
    "a choice that looks up in columns": _methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "looked_up(self, chosen):\n        return tf.gather(rows, chosen, axis=1)",
    )
    + _loss("return tf.reduce_sum(net.looked_up(net.choose(rows * w)))"),
    "a choice that is shifted there": _methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "gates(self, chosen):\n        return tf.one_hot(chosen + 1, 4)",
    )
    + _loss("return tf.reduce_sum(net.gates(net.choose(rows * w))[:, :3] * rows)"),
    "a choice with other values": _methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3, 2.0, -1.0)",
    )
    + _GATED,
    "a choice by a subscript": _methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "gates(self, chosen):\n        return tf.one_hot(chosen[0], 3)",
    )
    + _loss("return tf.reduce_sum(net.gates([net.choose(rows * w)]) * rows)"),
    "a choice on the line of its method": _methods(
        "choose(self, scores): return tf.argmax(scores * 2.0, axis=-1)",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3)",
    )
    + _GATED,
    "a choice that a function looks up": _methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "looked_up(self, chosen):\n        at = chosen\n        return tf.nn.embedding_lookup(rows[:, :2], ids=at)",
    )
    + _loss("return tf.reduce_sum(net.looked_up(net.choose(rows[:, :2] * w[:2])))"),
}

_ROUNDED = {
    "rounding in a lambda": "loss = lambda: tf.reduce_sum(tf.round(w * 2.0))\n",
    "a floor division": _loss("return tf.reduce_sum((w * 4.0) // 0.5)"),
    "a remainder of a floor": _loss("return tf.reduce_sum(tf.math.floordiv(w, 0.5))"),
    "a detour through integers under a name": _loss(
        "whole = tf.cast(w * 9.0, tf.int32)", "return tf.reduce_sum(tf.cast(whole, tf.float32) * x)"
    ),
    "a detour that takes the name of its value": "def quantised(v):\n    v = tf.cast(v, tf.int32)\n"
    "    return tf.cast(v, tf.float32)\n" + _loss("return tf.reduce_sum(quantised(w) * x)"),
    "a detour in a lambda": "loss = lambda: tf.reduce_sum(tf.cast(tf.cast(w * 9.0, tf.int32), tf.float32) * x)\n",
    "a detour with arithmetic": _loss("return tf.reduce_sum(tf.cast(tf.cast(w * 9.0, tf.int32) + 1, tf.float32) * x)"),
    "a detour through a function": "def whole(v):\n    return tf.cast(v, dtype=tf.int32)\n"
    + _loss("return tf.reduce_sum(tf.cast(whole(w), tf.float32) * x)"),
    "a detour through a rounding function": "def whole(v):\n    return tf.cast(tf.round(v), tf.int32)\n"
    + _loss("return tf.reduce_sum(tf.cast(whole(w), tf.float32) * x)"),
    "a detour by saturation": _loss(
        "return tf.reduce_sum(tf.cast(tf.saturate_cast(w * 9.0, tf.uint8), tf.float32) * x)"
    ),
    "a sign": _loss("return tf.reduce_sum(tf.sign(w - 1.0) * x)"),
    "a sign by keras": "import keras\n" + _loss("return keras.ops.sum(keras.ops.sign(w - 1.0) * x)"),
}

_WRITTEN_OUT = {
    "a grid between learned ends": _loss("return tf.reduce_sum(tf.square(tf.linspace(w[0], w[1], 5) - 0.3))"),
    "a grid between learned ends along an axis": _loss(
        "return tf.reduce_sum(tf.square(tf.linspace(w, w + 1.0, 5, axis=-1) - 0.3))"
    ),
    "a range of learned length": _loss("return tf.reduce_sum(tf.range(0.0, w[2], 0.5))"),
    "a range from a learned start": _loss("return tf.reduce_sum(tf.range(w[0], 3.0))"),
    "a range by names": _loss("return tf.reduce_sum(tf.range(start=0.0, limit=w[2]))"),
    "a range of one number": _loss("return tf.reduce_sum(tf.range(w[2] * 2.0))"),
    "a learned value at a place": _loss(
        "return tf.reduce_sum(tf.one_hot([0, 2], 3, on_value=w[0], off_value=0.0) * rows)"
    ),
    "a learned value at a place only": _loss(
        "return tf.reduce_sum(tf.one_hot([0, 2], 3, on_value=w[0], dtype=tf.float32) * rows)"
    ),
    "rows in a random order": _loss("return tf.reduce_sum(tf.random.shuffle(w) * x)"),
    "rows in a random order, computed": _loss("return tf.reduce_sum(tf.random.shuffle(w * 2.0, seed=3) * x)"),
    "rows in a random order with a seed": _loss(
        "v = w * 2.0", "return tf.reduce_sum(tf.random.shuffle(v, seed=3) * x)"
    ),
    "counts by a seed": _loss("return tf.reduce_sum(tf.random.stateless_poisson([8, 3], seed=(1, 2), lam=tf.exp(w)))"),
    "counts in a lambda": "loss = lambda: tf.reduce_sum(tf.random.poisson([8], tf.exp(w)))\n",
}

_PICTURES = {
    "a contrast": _loss("return tf.reduce_mean(tf.square(tf.image.adjust_contrast(picture, w[0])))"),
    "a contrast of a computed picture": _loss(
        "return tf.reduce_mean(tf.square(tf.image.adjust_contrast(picture * 0.5, contrast_factor=w[0])))"
    ),
    "a contrast in a lambda": "loss = lambda: tf.reduce_mean("
    "tf.square(tf.image.adjust_contrast(picture * 0.5, w[0])))\n",
    "a saturation": _loss("return tf.reduce_mean(tf.square(tf.image.adjust_saturation(picture, w[0])))"),
    "colours from hues": _loss("return tf.reduce_mean(tf.square(tf.image.hsv_to_rgb(picture * w)))"),
    "a glimpse that is not centred": _loss(
        "return tf.reduce_mean(tf.image.extract_glimpse(picture, (2, 2), w[None, :2], centered=False))"
    ),
    "a glimpse in a lambda": "loss = lambda: tf.reduce_mean("
    "tf.image.extract_glimpse(picture, (2, 2), w[None, :2] / 9.0))\n",
    "a glimpse of a named size": "size = (2, 2)\n"
    + _loss("return tf.reduce_mean(tf.image.extract_glimpse(picture, size, w[None, :2] / 9.0))"),
    "a glimpse of a computed size": "side = 2\n"
    + _loss("return tf.reduce_mean(tf.square(tf.image.extract_glimpse(picture, [side, side + 1], w[None, :2] / 9.0)))"),
    "a rotated picture": "import keras\nturn = tf.constant([[1.0, 0.1, 0.0, -0.1, 1.0, 0.0, 0.0, 0.0]])\n"
    + _loss("return tf.reduce_mean(tf.square(keras.ops.image.affine_transform(picture, turn * w[0])))"),
    "a projected picture": _loss(
        "theta = tf.concat([[1.1, 0.1], w[:1], [-0.1, 0.9], w[1:2], [0.01, 0.0]], 0)[None]",
        "moved = tf.raw_ops.ImageProjectiveTransformV3(",
        "    images=picture, transforms=theta, output_shape=tf.shape(picture)[1:3], fill_value=0.0,",
        "    interpolation='NEAREST',",
        ")",
        "return tf.reduce_mean(tf.square(moved))",
    ),
    "a projected picture in a lambda": "loss = lambda: tf.reduce_mean(tf.square(tf.raw_ops.ImageProjectiveTransformV3("
    "images=picture, transforms=tf.concat([[1.1, 0.1], w[:1], [-0.1, 0.9], w[1:2], [0.01, 0.0]], 0)[None], "
    "output_shape=[5, 4], fill_value=0.0, interpolation='BILINEAR')))\n",
}
_PICTURES = {
    name: f"picture = tf.random.stateless_uniform((1, 6, 6, 3), (1, 2), 0.1, 0.9)\n{body}"
    for name, body in _PICTURES.items()
}

_DRAWN = {
    "a coin": _loss(
        "p = tf.tile(tf.sigmoid(w)[None], [8, 1])",
        "on = tf.cast(p > tf.random.uniform(tf.shape(p)), tf.float32)",
        "return tf.reduce_mean(tf.square(tf.reduce_sum(on, axis=1) - 2.5))",
    ),
    "a coin for each row and column": _loss(
        "p = tf.tile(tf.sigmoid(w)[None], [8, 1])",
        "on = tf.random.uniform((8, 3)) < p",
        "error = tf.square(tf.reduce_sum(tf.cast(on, tf.float32), axis=1, keepdims=True) - 2.5)",
        "return tf.reduce_mean(error)",
    ),
    "a coin of fixed chance": _loss(
        "on = tf.cast(tf.random.uniform((8, 3)) + w < 0.5, tf.float32)",
        "return tf.reduce_mean(tf.square(tf.reduce_sum(on, axis=1) - 2.5))",
    ),
    "a draw inside the mean": _loss(
        "return tf.reduce_mean(tf.gather(x, tf.random.categorical(tf.tile(w[None], [8, 1]) * 2.0, 1)[:, 0]))"
    ),
    "a draw in a lambda": "loss = lambda: tf.reduce_mean("
    "tf.gather(x, tf.random.categorical(tf.tile(w[None], [8, 1]) * 2.0, 1)[:, 0]))\n",
    "a draw whose mean another function takes": "def mean(v):\n    return tf.reduce_mean(v)\n"
    + _loss("return mean(tf.gather(x, tf.random.categorical(tf.tile(w[None], [8, 1]), 1)[:, 0]))"),
}

_LEFT = {
    "a function of numpy": "import numpy as np\n"
    + _loss("return tf.reduce_sum(tf.numpy_function(np.sin, [w], tf.float32))"),
    "a function of numpy without a counterpart": "import numpy as np\n"
    + _loss("return tf.reduce_sum(tf.numpy_function(np.unwrap, [w], tf.float32))"),
    "a lambda outside": "import numpy as np\n"
    + _loss("return tf.reduce_sum(tf.numpy_function(lambda v: np.tanh(v) * 2.0, [w], tf.float32))"),
    "a lambda outside without a counterpart": "import numpy as np\n"
    + _loss("return tf.reduce_sum(tf.numpy_function(lambda v: np.unwrap(v), [w], tf.float32))"),
    "a named lambda outside": "import numpy as np\noutside = lambda v: np.exp(v)\n"
    + _loss("return tf.reduce_sum(tf.numpy_function(outside, [w], tf.float32))"),
    "a function outside": "import numpy as np\ndef outside(v):\n    return np.square(v) + 1.0\n"
    + _loss("return tf.reduce_sum(tf.numpy_function(outside, [w], tf.float32))"),
    "a function outside, in a lambda": "import numpy as np\ndef outside(v):\n    return np.square(v) + 1.0\n"
    "loss = lambda: tf.reduce_sum(tf.numpy_function(outside, [w], tf.float32))\n",
    "a function inside the same": "import numpy as np\n"
    + _loss(
        "def outside(v):",
        "    doubled = v * 2.0",
        "    return np.sqrt(doubled)",
        "return tf.reduce_sum(tf.numpy_function(outside, [w], tf.float32))",
    ),
    "a function that holds another": "import numpy as np\n"
    + _loss(
        "def outside(v):",
        "    return np.array(list(map(lambda e: e * 2.0, v)), 'float32')",
        "return tf.reduce_sum(tf.numpy_function(outside, [w], tf.float32))",
    ),
    "a function from elsewhere": "import numpy as np\nfrom functools import partial\n"
    + _loss("return tf.reduce_sum(tf.numpy_function(partial(np.clip, a_min=0.3, a_max=2.0), [w], tf.float32))"),
    "a function of named inputs": "import numpy as np\n"
    + _loss("given = [w]", "return tf.reduce_sum(tf.numpy_function(np.sin, given, tf.float32))"),
    "a python function": "import math\n"
    + _loss("return tf.reduce_sum(tf.py_function(lambda v: tf.constant(math.sin(v[0])), [w], tf.float32))"),
}

_SETTINGS = {
    "a relu that is never active": _loss("return tf.reduce_sum(tf.nn.relu(w - 9.0) * x)"),
    "a maximum with zero": _loss("return tf.reduce_sum(tf.maximum(w - 9.0, 0.0) * x)"),
    "a maximum with zero first": _loss("return tf.reduce_sum(tf.maximum(0.0, w - 9.0) * x)"),
    "a relu with arguments": _loss("return tf.reduce_sum(tf.keras.activations.relu(w - 9.0, max_value=6.0) * x)"),
    "a clip": _loss("return tf.reduce_sum(tf.clip_by_value(w + 9.0, 0.0, 1.0) * x)"),
    "a clip by keras": "import keras\n" + _loss("return keras.ops.sum(keras.ops.clip(w + 9.0, 0.0, 1.0) * x)"),
    "a relu6": _loss("return tf.reduce_sum(tf.nn.relu6(w + 9.0) * x)"),
    "a hard sigmoid": _loss("return tf.reduce_sum(tf.keras.activations.hard_sigmoid(w + 9.0) * x)"),
    "a softmax over one column": _loss("return tf.reduce_sum(tf.nn.softmax(w[:, None]) * x[:, None])"),
    "attention over one column": _loss(
        "return tf.reduce_sum(tf.nn.softmax(rows[..., None] * w[:, None], axis=-1) * rows[..., None])"
    ),
    "attention over one column by default": _loss(
        "return tf.reduce_sum(tf.nn.softmax(rows[..., None] * w[:, None]) * rows[..., None])"
    ),
    "a softmax over one row": _loss("return tf.reduce_sum(tf.nn.softmax(w[None, :, None], 2) * rows[:1, :, None])"),
    "a softmax over one number": _loss("return tf.reduce_sum(tf.nn.softmax(w[:1]) * 2.0)"),
}

_VARIABLES = {
    "an integer variable": "variables = [tf.Variable([1, 2, 3], name='n')]\n"
    + _loss("return tf.reduce_sum(tf.cast(variables[0], tf.float32) * x)"),
    "an integer variable under a name": "n = tf.Variable(2)\nvariables = [n]\n"
    + _loss("return tf.reduce_sum(tf.cast(n, tf.float32) * x)"),
    "an integer variable by its dtype": "n = tf.Variable([1, 2, 3], dtype=tf.int32, name='n')\nvariables = [n]\n"
    + _loss("return tf.reduce_sum(tf.cast(n, tf.float32) * x)"),
    "an integer weight of a layer": "import keras\nclass Shift(keras.layers.Layer):\n    def build(self, shape):\n"
    "        self.n = self.add_weight(name='n', shape=(3,), dtype='int32', initializer='ones')\n"
    "    def call(self, v):\n        return v + keras.ops.cast(self.n, 'float32')\n"
    "shift = Shift()\nshift.build((None, 3))\nvariables = [shift.n]\n" + _loss("return tf.reduce_sum(shift(rows))"),
    "a variable that is not trainable": "s = tf.Variable([1.0, 2.0, 3.0], trainable=False, name='s')\nvariables = [s]\n"
    + _loss("return tf.reduce_sum(s * x)"),
    "a state that is read back": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + _loss("state.assign(w * 2.0)", "return tf.reduce_sum(state * x)"),
    "a state that is read back as a value": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + _loss("kept = w * 2.0", "state.assign(kept)", "return tf.reduce_sum(state.read_value() * x)"),
    "a state that is added to": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + _loss("state.assign_add(w * 2.0)", "return tf.reduce_sum(tf.square(state) * x)"),
    "the result of an assignment": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + _loss("now = state.assign(w * 2.0)", "return tf.reduce_sum(now * x)"),
    "the result of an assignment of a name": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + _loss("kept = w * 2.0", "now = state.assign(kept)", "return tf.reduce_sum(now * x)"),
    "the result of an addition": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + _loss("now = state.assign_sub(w * 2.0)", "return tf.reduce_sum(now * x)"),
    "a state in a list": "states = [tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')]\n"
    + _loss("states[0].assign(w * 2.0)", "return tf.reduce_sum(states[0] * x)"),
    "a state that a loop writes": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + _loss("for _ in range(2):", "    state.assign(w + state)", "return tf.reduce_sum(state * x)"),
    "a state behind another statement": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + _loss("v = w * 2.0; state.assign(v)", "return tf.reduce_sum(state * x)"),
    "a state that another method reads": "class Net:\n    def __init__(self):\n"
    "        self.state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    "    def advance(self):\n        self.state.assign_add(w * 2.0)\n"
    "    def told(self):\n        self.count = 1\n        return self.state.value() * x\n"
    "net = Net()\n" + _loss("net.advance()", "return tf.reduce_sum(net.told())"),
    "a tensor made before the step": "scale = tf.exp(w)\n" + _loss("return tf.reduce_sum(scale * x)"),
    "a tensor made before the step, as a sum": "scale = w * 2.0 + 1.0\n"
    + _loss("return tf.reduce_sum(scale * x + scale)"),
    "a tensor in a list, made before the step": "scales = [tf.exp(w)]\n" + _loss("return tf.reduce_sum(scales[0] * x)"),
    "an object made before the step": "class Prior:\n    def __init__(self, v):\n        self.scale = tf.exp(v)\n"
    "prior = Prior(w)\n" + "def loss():\n    'The loss.'\n    return tf.reduce_sum(prior.scale * x)\n",
    "an object made before two functions": "class Prior:\n    def __init__(self, v):\n        self.scale = tf.exp(v)\n"
    "prior = Prior(w)\ndef other():\n    return prior.scale\n" + _loss("return tf.reduce_sum(prior.scale * x)"),
    "factors of zeros": "def make():\n    a = tf.Variable(tf.zeros((3, 2)), name='a')\n"
    "    b = tf.Variable(tf.zeros((2, 3)), name='b')\n    return [a, b]\nvariables = make()\n"
    + _loss("a, b = variables", "return tf.reduce_sum(tf.square(rows @ a @ b - rows))"),
    "factors of zeros in two places": "a = tf.Variable(tf.zeros((3, 2)), name='a')\n"
    "b = tf.Variable(tf.zeros((2, 3)), name='b')\nvariables = [a, b]\n"
    + _loss("return tf.reduce_sum(tf.square(rows @ a @ b - rows))"),
    "factors of zeros by numpy": "import numpy as np\ndef make():\n"
    "    a = tf.Variable(np.zeros((3, 2), 'float32'), name='a')\n"
    "    b = tf.Variable(np.zeros((2, 3), 'float32'), name='b')\n    return [a, b]\nvariables = make()\n"
    + _loss("a, b = variables", "return tf.reduce_sum(tf.square(rows @ a @ b - rows))"),
    "weights of zeros": "import keras\nclass Low(keras.layers.Layer):\n    def build(self, shape):\n"
    "        self.a = self.add_weight(name='a', shape=(3, 2), initializer='zeros')\n"
    "        self.b = self.add_weight(name='b', shape=(2, 3), initializer=keras.initializers.Zeros())\n"
    "    def call(self, v):\n        return v @ self.a @ self.b\n"
    "low = Low()\nlow.build((None, 3))\nvariables = low.weights\n"
    + _loss("return tf.reduce_sum(tf.square(low(rows) - rows))"),
}


def _step(*lines: str, before: str = "") -> str:
    return before + "def step():\n" + "".join(f"    {line}\n" for line in lines)


_TAPES = {
    "a tape that watches nothing": _step(
        "with tf.GradientTape(watch_accessed_variables=False) as tape:",
        "    loss = tf.reduce_sum(tf.square(w * x))",
        "gradient = tape.gradient(loss, w)",
        "return loss",
    ),
    "a tape that watches nothing, and lasts": _step(
        "with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:",
        "    loss = tf.reduce_sum(tf.square(w * x))",
        "gradient = tape.gradient(loss, w)",
        "return loss",
    ),
    "a tape that watches nothing first, and lasts": _step(
        "with tf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:",
        "    loss = tf.reduce_sum(tf.square(w * x))",
        "gradient = tape.gradient(loss, w)",
        "return loss",
    ),
    "a tape that does not watch a tensor": _step(
        "picture = x * 2.0",
        "with tf.GradientTape() as tape:",
        "    loss = tf.reduce_sum(tf.square(picture * y))",
        "gradient = tape.gradient(loss, picture)",
        "return loss",
    ),
    "a tape that does not watch a computed tensor": _step(
        "hidden = w * 2.0",
        "with tf.GradientTape() as tape:",
        "    loss = tf.reduce_sum(tf.square(hidden * y))",
        "gradient = tape.gradient(loss, hidden)",
        "return loss",
    ),
    "a loss before the tape": _step(
        "loss = tf.reduce_sum(tf.square(w * x))",
        "with tf.GradientTape() as tape:",
        "    doubled = loss * 2.0",
        "gradient = tape.gradient(doubled, w)",
        "return loss",
    ),
    "a loss after the tape": _step(
        "with tf.GradientTape() as tape:",
        "    hidden = w * x",
        "loss = tf.reduce_sum(tf.square(hidden))",
        "gradient = tape.gradient(loss, w)",
        "return loss",
    ),
    "a loss around the tape": _step(
        "hidden = w * x",
        "",
        "with tf.GradientTape() as tape:",
        "    squared = tf.square(hidden)",
        "total = tf.reduce_sum(squared)",
        "loss = total + 1.0",
        "gradient = tape.gradient(loss, w)",
        "return loss",
    ),
    "a loss before the tape, behind another statement": _step(
        "v = w * x; loss = tf.reduce_sum(v)",
        "with tf.GradientTape() as tape:",
        "    doubled = loss * 2.0",
        "gradient = tape.gradient(doubled, w)",
        "return loss",
    ),
    "a loss in a block before the tape": _step(
        "with tf.name_scope('forward'):",
        "    loss = tf.reduce_sum(tf.square(w * x))",
        "with tf.GradientTape() as tape:",
        "    doubled = loss * 2.0",
        "gradient = tape.gradient(doubled, w)",
        "return loss",
    ),
    "a loss of a function before the tape": _step(
        "hidden = forward(x)",
        "with tf.GradientTape() as tape:",
        "    loss = tf.reduce_sum(tf.square(hidden))",
        "gradient = tape.gradient(loss, w)",
        "return loss",
        before="def forward(v):\n    return w * v\n",
    ),
    "a loss of a function of a batch": _step(
        "batch = next(batches)",
        "hidden = forward(batch)",
        "with tf.GradientTape() as tape:",
        "    loss = tf.reduce_sum(tf.square(hidden))",
        "gradient = tape.gradient(loss, w)",
        "return loss",
        before="def forward(v):\n    return w * v\nbatches = iter([x] * 9)\n",
    ),
    "a tape that pauses": _step(
        "with tf.GradientTape() as tape:",
        "    with tape.stop_recording():",
        "        hidden = w * x",
        "        scaled = hidden * 2.0",
        "    loss = tf.reduce_sum(tf.square(scaled))",
        "gradient = tape.gradient(loss, w)",
        "return loss",
    ),
    "a tape that pauses on one line": _step(
        "with tf.GradientTape() as tape:",
        "    with tape.stop_recording(): hidden = w * x",
        "    loss = tf.reduce_sum(tf.square(hidden))",
        "gradient = tape.gradient(loss, w)",
        "return loss",
    ),
    "two tapes at once": _step(
        "hidden = w * x",
        "with tf.GradientTape() as one, tf.GradientTape() as other:",
        "    loss = tf.reduce_sum(tf.square(hidden))",
        "gradient = one.gradient(loss, w)",
        "return loss",
    ),
    "a tape without a name": _step(
        "tape = tf.GradientTape()",
        "hidden = w * x",
        "with tape:",
        "    loss = tf.reduce_sum(tf.square(hidden))",
        "gradient = tape.gradient(loss, w)",
        "return loss",
    ),
    "a loss that minimize calls, in steps": _step(
        "hidden = w * x",
        "scaled = hidden * 2.0",
        "loss = tf.reduce_sum(tf.square(scaled))",
        "optimizer.minimize(lambda: loss, var_list=[w])",
        "return loss + 1.0",
        before="optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)\n",
    ),
    "a loss that minimize calls, given anew": _step(
        "total = w * x",
        "total = tf.square(total)",
        "total = tf.reduce_sum(total)",
        "optimizer.minimize(lambda: total, var_list=[w])",
        "return total",
        before="optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)\n",
    ),
    "a loss that minimize calls, of a function": _step(
        "hidden = forward(x)",
        "loss = tf.reduce_sum(tf.square(hidden))",
        "optimizer.minimize(lambda: loss, var_list=[w])",
        "return loss",
        before="def forward(v):\n    return w * v\noptimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)\n",
    ),
    "a loss that minimize calls, behind another statement": _step(
        "loss = tf.reduce_sum(tf.square(w * x)); optimizer.minimize(lambda: loss, var_list=[w])",
        "return loss",
        before="optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)\n",
    ),
    "a variable that stops": _step(
        "with tf.GradientTape() as tape:",
        "    loss = tf.reduce_sum(tf.square(tf.stop_gradient(w * 2.0) * x))",
        "gradient = tape.gradient(loss, w)",
        "return loss",
    ),
    "a variable that becomes a tensor": _step(
        "with tf.GradientTape() as tape:",
        "    loss = tf.reduce_sum(tf.square(net.w * x))",
        "gradient = tape.gradient(loss, net.w)",
        "net.w -= 0.1 * gradient",
        "return loss",
        before="import keras\nclass Net: pass\nnet = Net()\nnet.w = keras.Variable([0.2, 1.4, 2.6], name='w')\n",
    ),
    "a variable that becomes a larger tensor": _step(
        "with tf.GradientTape() as tape:",
        "    loss = tf.reduce_sum(tf.square(net.w * x))",
        "gradient = tape.gradient(loss, net.w)",
        "net.w += 0.1 * gradient",
        "return loss",
        before="import keras\nclass Net: pass\nnet = Net()\nnet.w = keras.Variable([0.2, 1.4, 2.6], name='w')\n",
    ),
    "a variable that becomes a tensor by a sum": _step(
        "with tf.GradientTape() as tape:",
        "    loss = tf.reduce_sum(tf.square(net.w * x))",
        "gradient = tape.gradient(loss, net.w)",
        "net.w = net.w - 0.1 * (gradient if gradient is not None else 0.0)",
        "return loss",
        before="class Net: pass\nnet = Net()\nnet.w = tf.Variable([0.2, 1.4, 2.6], name='w')\n",
    ),
}

_DATA = "data = (tf.random.stateless_normal((8, 4), (1, 2)), tf.random.stateless_normal((8, 1), (3, 4)))\n"


def _model(*lines: str, loss: str = "mse", data: str = _DATA) -> str:
    """A model that the last of the lines makes."""
    *before, last = lines
    made = "".join(f"    {line}\n" for line in before)
    # AutoGraph knows the line of a function of the file, so that the file is known.
    return (
        f"import keras\n{data}def make():\n    keras.utils.set_random_seed(1)\n{made}    return {last}\n"
        f"model = make()\nmodel.compile('sgd', {loss!r})\n"
    )


_LINE = "keras.layers.Lambda(lambda p: tf.identity(p))"
_CHOICE = "keras.layers.Lambda(lambda p: tf.argmax(p, -1))"

_MODELS = {
    "rows of a choice in a list": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), {_CHOICE}, keras.layers.Embedding(6, 3), "
        "keras.layers.Dense(1)])"
    ),
    "rows of a choice in a list, with options": _model(
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), keras.layers.Lambda(lambda p: tf.argmax(p, -1), "
        "output_shape=()), keras.layers.Embedding(6, output_dim=3, name='rows', embeddings_initializer='zeros'), "
        "keras.layers.Dense(1)])"
    ),
    "rows of a choice of a named function": _model(
        "def choose(p):",
        "    return tf.argmax(p, -1)",
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), keras.layers.Lambda(choose), "
        "keras.layers.Embedding(6, 3), keras.layers.Dense(1)])",
    ),
    "rows of a choice with kept dimensions": _model(
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), "
        "keras.layers.Lambda(lambda p: keras.ops.argmax(p, -1, keepdims=True)), "
        "keras.layers.Embedding(6, 3), keras.layers.Flatten(), keras.layers.Dense(1)])"
    ),
    "rows of a choice that hide padding": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), {_CHOICE}, "
        "keras.layers.Embedding(6, 3, mask_zero=True), keras.layers.Dense(1)])"
    ),
    "rows of a choice of a computed size": _model(
        "size = {'size': 6}",
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), {_CHOICE}, "
        "keras.layers.Embedding(size['size'] + 0, 3), keras.layers.Dense(1)])",
    ),
    "a choice that is not looked up": _model(
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), "
        "keras.layers.Lambda(lambda p: tf.cast(tf.argmax(p, -1), tf.float32)[:, None]), keras.layers.Dense(1)])"
    ),
    "a choice at the end of a list": _model(
        f"front = keras.Sequential([keras.Input((4,)), keras.layers.Dense(6), {_CHOICE}])",
        "keras.Sequential([front, keras.layers.Embedding(6, 3), keras.layers.Dense(1)])",
    ),
    "rows of a choice in a function": _model(
        "inputs = keras.Input((4,))",
        "v = keras.layers.Dense(6)(inputs)",
        f"v = {_CHOICE}(v)",
        "v = keras.layers.Embedding(6, 3)(v)",
        "keras.Model(inputs, keras.layers.Dense(1)(v))",
    ),
    "rows of a choice in one expression": _model(
        "inputs = keras.Input((4,))",
        f"v = keras.layers.Embedding(6, 3)({_CHOICE}(keras.layers.Dense(6)(inputs)))",
        "keras.Model(inputs, keras.layers.Dense(1)(v))",
    ),
    "rows of a choice in a function, later": _model(
        "inputs = keras.Input((4,))",
        f"v = {_CHOICE}(keras.layers.Dense(6)(inputs))",
        "other = keras.layers.Dense(3)(inputs)",
        "u = keras.layers.Embedding(6, 3)(v)",
        "keras.Model(inputs, keras.layers.Dense(1)(u + other))",
    ),
    "rows of a choice that is looked up twice": _model(
        "inputs = keras.Input((4,))",
        f"v = {_CHOICE}(keras.layers.Dense(6)(inputs))",
        "u = keras.layers.Embedding(6, 3)(v)",
        "keras.Model(inputs, keras.layers.Dense(1)(u + keras.layers.Embedding(6, 3)(v)))",
    ),
    "rows of a choice that is returned": _model(
        "inputs = keras.Input((4,))",
        f"v = {_CHOICE}(keras.layers.Dense(6)(inputs))",
        "keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Embedding(6, 3)(v)))",
    ),
    "rows of a choice in an attribute": _model(
        "class Net: pass",
        "net, inputs = Net(), keras.Input((4,))",
        f"net.v = {_CHOICE}(keras.layers.Dense(6)(inputs))",
        "u = keras.layers.Embedding(6, 3)(net.v)",
        "keras.Model(inputs, keras.layers.Dense(1)(u))",
    ),
    "rows of a choice that a function looks up": _model(
        "inputs = keras.Input((4,))",
        f"v = {_CHOICE}(keras.layers.Dense(6)(inputs))",
        "u = keras.ops.cast(v, 'float32')[:, None]",
        "keras.Model(inputs, keras.layers.Dense(1)(u))",
    ),
    "layers of zeros": _model(
        "one = keras.layers.Dense(2, use_bias=False, kernel_initializer='zeros', name='one')",
        "two = keras.layers.Dense(1, use_bias=False, kernel_initializer=keras.initializers.Zeros(), name='two')",
        f"keras.Sequential([one, {_LINE}, two])",
    ),
    "a layer that is frozen": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, trainable=False, name='first'), {_LINE}, "
        "keras.layers.Dense(1, trainable=False, name='last')])"
    ),
    "a layer that is frozen afterwards": _model(
        "first = keras.layers.Dense(3, name='first')",
        f"model = keras.Sequential([keras.Input((4,)), first, {_LINE}, keras.layers.Dense(1, trainable=False)])",
        "first.trainable = False",
        "model",
    ),
    "a softmax of a single unit": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, 'tanh'), {_LINE}, "
        "keras.layers.Dense(1, activation='softmax', name='last')])"
    ),
    "a softmax of a single unit, in a loss of classes": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, 'tanh'), {_LINE}, "
        "keras.layers.Dense(1, activation='softmax')])",
        loss="categorical_crossentropy",
    ),
    "a softmax layer over one column": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Reshape((4, 1)), keras.layers.Dense(1), {_LINE}, "
        "keras.layers.Softmax(name='soft'), keras.layers.Flatten(), keras.layers.Dense(1, trainable=False)])"
    ),
    "a softmax layer over one unit": _model(
        f"keras.Sequential([keras.Input((4,)), keras.layers.Dense(1), {_LINE}, keras.layers.Softmax(name='soft')])"
    ),
    "a relu that is dead": _model(
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation='relu', name='dead', "
        f"bias_initializer=keras.initializers.Constant(-99.0)), {_LINE}, keras.layers.Dense(1)])"
    ),
    "sigmoids in a loop": _model(
        "model = keras.Sequential([keras.Input((4,))])",
        "for _ in range(12):",
        "    model.add(keras.layers.Dense(4, activation='sigmoid'))",
        f"model.add({_LINE})",
        "model.add(keras.layers.Dense(1))",
        "model",
    ),
    "sigmoids in two loops": _model(
        "model = keras.Sequential([keras.Input((4,))])",
        "for _ in range(7):",
        "    model.add(keras.layers.Dense(4, activation='sigmoid'))",
        "for _ in range(7):",
        "    model.add(keras.layers.Dense(4, activation='sigmoid'))",
        f"model.add({_LINE})",
        "model.add(keras.layers.Dense(1))",
        "model",
    ),
    "half precision that overflows": _model(
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, dtype='float16', name='first'), "
        "keras.layers.Lambda(lambda p: tf.exp(p * 60000.0), dtype='float16'), keras.layers.Dense(1)])"
    ),
    "half precision by a function of numpy": _model(
        "import numpy as np",
        "keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name='first'), "
        "keras.layers.Lambda(lambda p: tf.exp(tf.cast(p * 100.0, np.float16))), keras.layers.Dense(1)])",
    ),
}

_STARRED = {
    "a position, its arguments in a tuple": _loss(
        "given = (w,)", "return tf.reduce_sum(tf.cast(tf.argmax(*given), tf.float32))"
    ),
    "a position, its arguments in a dictionary": _loss(
        "given = dict(input=w)", "return tf.reduce_sum(tf.cast(tf.argmax(**given), tf.float32))"
    ),
    "a one-hot position, its arguments in a tuple": _loss(
        "given = (w,)", "return tf.reduce_sum(tf.one_hot(tf.argmax(*given), 3) * x)"
    ),
    "a one-hot position, its arguments in a dictionary": _loss(
        "given = dict(input=w)", "return tf.reduce_sum(tf.one_hot(tf.argmax(**given), 3) * x)"
    ),
    "a chosen row, its arguments in a tuple": _loss(
        "given = (w,)", "return tf.reduce_sum(tf.gather(x, tf.argmax(*given)))"
    ),
    "a chosen row, its arguments in a dictionary": _loss(
        "given = dict(input=w)", "return tf.reduce_sum(tf.gather(x, tf.argmax(**given)))"
    ),
    "an order of an order, its arguments in a tuple": _loss(
        "given = (w,)", "return tf.reduce_sum(tf.cast(tf.argsort(tf.argsort(*given)), tf.float32) * x)"
    ),
    "an order of an order, its arguments in a dictionary": _loss(
        "given = dict(values=w)", "return tf.reduce_sum(tf.cast(tf.argsort(tf.argsort(**given)), tf.float32) * x)"
    ),
    "a rounded value, its arguments in a tuple": _loss("given = (w,)", "return tf.reduce_sum(tf.round(*given))"),
    "a rounded value, its arguments in a dictionary": _loss(
        "given = dict(x=w)", "return tf.reduce_sum(tf.round(**given))"
    ),
    "a sign, its arguments in a tuple": _loss("given = (w,)", "return tf.reduce_sum(tf.sign(*given))"),
    "a sign, its arguments in a dictionary": _loss("given = dict(x=w)", "return tf.reduce_sum(tf.sign(**given))"),
    "a look-up, its arguments in a tuple": _loss(
        "given = (x, tf.cast(w, tf.int32),)", "return tf.reduce_sum(tf.gather(*given))"
    ),
    "a look-up, its arguments in a dictionary": _loss(
        "given = dict(params=x, indices=tf.cast(w, tf.int32))", "return tf.reduce_sum(tf.gather(**given))"
    ),
    "a bucket, its arguments in a tuple": _loss(
        "given = ([0.5, 1.5], w,)", "return tf.reduce_sum(tf.gather(x, tf.searchsorted(*given)))"
    ),
    "a bucket, its arguments in a dictionary": _loss(
        "given = dict(sorted_sequence=[0.5, 1.5], values=w)",
        "return tf.reduce_sum(tf.gather(x, tf.searchsorted(**given)))",
    ),
    "a place in a plane, its arguments in a tuple": _loss(
        "given = (rows, tf.cast(w[:2] * 0.5, tf.int32),)", "return tf.reduce_sum(tf.gather_nd(*given))"
    ),
    "a place in a plane, its arguments in a dictionary": _loss(
        "given = dict(params=rows, indices=tf.cast(w[:2] * 0.5, tf.int32))",
        "return tf.reduce_sum(tf.gather_nd(**given))",
    ),
    "a histogram, its arguments in a tuple": _loss(
        "given = (w, [0.0, 3.0], 4,)",
        "return tf.reduce_sum(tf.cast(tf.histogram_fixed_width(*given), tf.float32) * tf.range(4.0))",
    ),
    "a histogram, its arguments in a dictionary": _loss(
        "given = dict(values=w, value_range=[0.0, 3.0], nbins=4)",
        "return tf.reduce_sum(tf.cast(tf.histogram_fixed_width(**given), tf.float32) * tf.range(4.0))",
    ),
    "branches, its arguments in a tuple": _loss(
        "given = (w[0] > 0.1, lambda: x[0], lambda: y[0],)", "return tf.reduce_sum(tf.cond(*given))"
    ),
    "branches, its arguments in a dictionary": _loss(
        "given = dict(pred=w[0] > 0.1, true_fn=lambda: x[0], false_fn=lambda: y[0])",
        "return tf.reduce_sum(tf.cond(**given))",
    ),
    "a mask of a sequence, its arguments in a tuple": _loss(
        "given = (w, 4, tf.float32,)", "return tf.reduce_sum(tf.sequence_mask(*given))"
    ),
    "a mask of a sequence, its arguments in a dictionary": _loss(
        "given = dict(lengths=w, maxlen=4, dtype=tf.float32)", "return tf.reduce_sum(tf.sequence_mask(**given))"
    ),
    "a standard deviation, its arguments in a tuple": _loss(
        "given = (w * 0.0,)", "return tf.reduce_sum(tf.math.reduce_std(*given))"
    ),
    "a standard deviation, its arguments in a dictionary": _loss(
        "given = dict(input_tensor=w * 0.0)", "return tf.reduce_sum(tf.math.reduce_std(**given))"
    ),
    "a power, its arguments in a tuple": _loss("given = (w - w, 0.3,)", "return tf.reduce_sum(tf.pow(*given))"),
    "a power, its arguments in a dictionary": _loss(
        "given = dict(x=w - w, y=0.3)", "return tf.reduce_sum(tf.pow(**given))"
    ),
    "a logarithm, its arguments in a tuple": _loss("given = (w - w,)", "return tf.reduce_sum(tf.math.log(*given))"),
    "a logarithm, its arguments in a dictionary": _loss(
        "given = dict(x=w - w)", "return tf.reduce_sum(tf.math.log(**given))"
    ),
    "an angle, its arguments in a tuple": _loss("given = (w / w,)", "return tf.reduce_sum(tf.acos(*given))"),
    "an angle, its arguments in a dictionary": _loss("given = dict(x=w / w)", "return tf.reduce_sum(tf.acos(**given))"),
    "a mean of nothing, its arguments in a tuple": _loss(
        "given = (tf.boolean_mask(w * x, x > 9.0),)", "return tf.reduce_sum(tf.reduce_mean(*given))"
    ),
    "a mean of nothing, its arguments in a dictionary": _loss(
        "given = dict(input_tensor=tf.boolean_mask(w * x, x > 9.0))", "return tf.reduce_sum(tf.reduce_mean(**given))"
    ),
    "a unit vector, its arguments in a tuple": _loss(
        "given = (w - w,)", "return tf.reduce_sum(tf.linalg.normalize(*given)[0])"
    ),
    "a unit vector, its arguments in a dictionary": _loss(
        "given = dict(tensor=w - w)", "return tf.reduce_sum(tf.linalg.normalize(**given)[0])"
    ),
    "an exponential, its arguments in a tuple": _loss("given = (w * 200.0,)", "return tf.reduce_sum(tf.exp(*given))"),
    "an exponential, its arguments in a dictionary": _loss(
        "given = dict(x=w * 200.0)", "return tf.reduce_sum(tf.exp(**given))"
    ),
    "a relu, its arguments in a tuple": _loss("given = (w - 9.0,)", "return tf.reduce_sum(1.0 + tf.nn.relu(*given))"),
    "a relu, its arguments in a dictionary": _loss(
        "given = dict(features=w - 9.0)", "return tf.reduce_sum(1.0 + tf.nn.relu(**given))"
    ),
    "a clip, its arguments in a tuple": _loss(
        "given = (w + 9.0, 0.0, 1.0,)", "return tf.reduce_sum(tf.clip_by_value(*given))"
    ),
    "a clip, its arguments in a dictionary": _loss(
        "given = dict(t=w + 9.0, clip_value_min=0.0, clip_value_max=1.0)",
        "return tf.reduce_sum(tf.clip_by_value(**given))",
    ),
    "a range, its arguments in a tuple": _loss("given = (0.0, w[2], 0.5,)", "return tf.reduce_sum(tf.range(*given))"),
    "a range, its arguments in a dictionary": _loss(
        "given = dict(start=0.0, limit=w[2], delta=0.5)", "return tf.reduce_sum(tf.range(**given))"
    ),
    "a random order, its arguments in a tuple": _loss(
        "given = (w * 1.0,)", "return tf.reduce_sum(tf.random.shuffle(*given) * x)"
    ),
    "a random order, its arguments in a dictionary": _loss(
        "given = dict(value=w * 1.0)", "return tf.reduce_sum(tf.random.shuffle(**given) * x)"
    ),
    "a contrast, its arguments in a tuple": _loss(
        "given = (picture, w[0],)", "return tf.reduce_sum(tf.square(tf.image.adjust_contrast(*given)))"
    ),
    "a contrast, its arguments in a dictionary": _loss(
        "given = dict(images=picture, contrast_factor=w[0])",
        "return tf.reduce_sum(tf.square(tf.image.adjust_contrast(**given)))",
    ),
    "a hue, its arguments in a tuple": _loss(
        "given = (picture, w[0],)", "return tf.reduce_sum(tf.square(tf.image.adjust_hue(*given)))"
    ),
    "a hue, its arguments in a dictionary": _loss(
        "given = dict(image=picture, delta=w[0])", "return tf.reduce_sum(tf.square(tf.image.adjust_hue(**given)))"
    ),
    "colours from hues, its arguments in a tuple": _loss(
        "given = (picture * w,)", "return tf.reduce_sum(tf.square(tf.image.hsv_to_rgb(*given)))"
    ),
    "colours from hues, its arguments in a dictionary": _loss(
        "given = dict(images=picture * w)", "return tf.reduce_sum(tf.square(tf.image.hsv_to_rgb(**given)))"
    ),
    "a glimpse, its arguments in a tuple": _loss(
        "given = (picture, (2, 2), w[None, :2] / 9.0,)",
        "return tf.reduce_sum(tf.square(tf.image.extract_glimpse(*given)))",
    ),
    "a glimpse, its arguments in a dictionary": _loss(
        "given = dict(input=picture, size=(2, 2), offsets=w[None, :2] / 9.0)",
        "return tf.reduce_sum(tf.square(tf.image.extract_glimpse(**given)))",
    ),
    "counts, its arguments in a tuple": _loss(
        "given = ([8], tf.exp(w),)", "return tf.reduce_sum(tf.random.poisson(*given))"
    ),
    "counts, its arguments in a dictionary": _loss(
        "given = dict(shape=[8], lam=tf.exp(w))", "return tf.reduce_sum(tf.random.poisson(**given))"
    ),
    "a stop, its arguments in a tuple": _loss(
        "given = (w * 2.0,)", "return tf.reduce_sum(tf.stop_gradient(*given) * x)"
    ),
    "a stop, its arguments in a dictionary": _loss(
        "given = dict(input=w * 2.0)", "return tf.reduce_sum(tf.stop_gradient(**given) * x)"
    ),
    "a gathered draw, its arguments in a tuple": _loss(
        "given = (rows * w, 1,)", "return tf.reduce_sum(tf.gather(x, tf.random.categorical(*given)))"
    ),
    "a gathered draw, its arguments in a dictionary": _loss(
        "given = dict(logits=rows * w, num_samples=1)",
        "return tf.reduce_sum(tf.gather(x, tf.random.categorical(**given)))",
    ),
}
_STARRED = {name: f"picture = tf.ones((1, 6, 6, 3))\n{body}" for name, body in _STARRED.items()}


def _alone(names: str, loss: str) -> str:
    """A program that imports functions of TensorFlow without the module."""
    return (
        f"import numpy as np\nfrom tensorflow import Variable, {names}\n"
        f"w = Variable([0.2, 1.4, 2.6], name='w')\ndef loss():\n    return {loss}\n"
    )


_ALONE = {
    "a position by its name alone": _alone("argmax, cast, float32", "cast(argmax(w), float32)"),
    "a rounded value by its name alone": _alone("round as rounded, reduce_sum", "reduce_sum(rounded(w))"),
    "a sign by its name alone": _alone("sign, reduce_sum", "reduce_sum(sign(w))"),
    "a comparison by its name alone": _alone("cast, float32, reduce_sum", "reduce_sum(cast(w > 1.0, float32))"),
    "a branch by its name alone": _alone("cond", "cond(w[0] > 0.1, lambda: 1.0, lambda: 2.0)"),
    "a root by its name alone": _alone("sqrt, reduce_sum", "reduce_sum(sqrt(w - w))"),
    "a power by its name alone": _alone("pow as power, reduce_sum", "reduce_sum(power(w - w, 0.3))"),
    "a logarithm by its name alone": _alone("math as m", "m.reduce_sum(m.log(w - w))"),
    "an angle by its name alone": _alone("acos, reduce_sum", "reduce_sum(acos(w / w))"),
    "a quotient by its name alone": _alone("reduce_sum", "reduce_sum((w - w) / (w - w))"),
    "an exponential by its name alone": _alone("exp, reduce_sum", "reduce_sum(exp(w * 200.0))"),
    "a relu by its name alone": _alone("nn, reduce_sum", "1.0 + reduce_sum(nn.relu(w - 9.0))"),
    "a clip by its name alone": _alone("clip_by_value, reduce_sum", "reduce_sum(clip_by_value(w + 9.0, 0.0, 1.0))"),
    "a range by its name alone": _alone("range as numbers, reduce_sum", "reduce_sum(numbers(0.0, w[2], 0.5))"),
    "a contrast by its name alone": _alone(
        "image, ones, reduce_sum", "reduce_sum(image.adjust_contrast(ones((1, 6, 6, 3)), w[0]) ** 2)"
    ),
    "a glimpse by its name alone": _alone(
        "image, ones, reduce_sum", "reduce_sum(image.extract_glimpse(ones((1, 6, 6, 3)), (2, 2), w[None, :2]))"
    ),
    "a stop by its name alone": _alone("stop_gradient, reduce_sum", "reduce_sum(stop_gradient(w * 2.0))"),
    "a right class by its name alone": _alone(
        "argmax, equal, cast, float32, constant", "cast(equal(argmax(w, -1), constant(1, 'int64')), float32)"
    ),
    "a choice of a branch by its name alone": _alone(
        "where, reduce_sum", "reduce_sum(where(w > 1.0, 1.0 / (w - 0.2), w))"
    ),
    "a function of numpy by its name alone": _alone(
        "numpy_function, reduce_sum, float32", "reduce_sum(numpy_function(np.sin, [w], float32))"
    ),
}

_NUMPY = "from tensorflow.python.ops.numpy_ops import np_config\nnp_config.enable_numpy_behavior()\n"

_FURTHER = {
    "a position that looks up an element": _loss("return tf.gather_nd(x, tf.argmax(w)[None])"),
    "a choice that is copied": _methods(
        "choose(self, scores):\n        best = tf.identity(tf.argmax(scores, axis=-1))\n        return best",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3)",
    )
    + _GATED,
    "a mask of the largest that another method makes": _methods(
        "choose(self, scores):\n        return tf.math.top_k(scores, 2)[1]",
        "mask(self, chosen):\n        return tf.reduce_sum(tf.one_hot(chosen, 3), axis=0)",
    )
    + _loss("return tf.reduce_sum(net.mask(net.choose(w)) * x)"),
    "a cast that another method makes": _methods(
        "choose(self, v):\n        return tf.cast(v * 9.0, tf.int32)",
        "floating(self, v):\n        return tf.cast(v, tf.float32)",
    )
    + _loss("return tf.reduce_sum(net.floating(net.choose(w)) * x)"),
    "a one-hot draw behind another statement": _loss(
        "logits = rows * w; hot = tf.one_hot(tf.random.categorical(logits, 1)[:, 0], 3)",
        "return tf.reduce_sum(hot * rows)",
    ),
    "a learned bucket by keras": "import keras\n"
    + _loss("return keras.ops.sum(keras.ops.take(x, keras.ops.digitize(w, [0.5, 1.5]), axis=0))"),
    "a learned bucket by an op": _loss(
        "return tf.reduce_sum(tf.gather(x, tf.raw_ops.Bucketize(input=w, boundaries=[0.5, 1.5])))"
    ),
    "a learned place that is scaled in a plane": "plane = tf.reshape(tf.range(36.0), (6, 6))\n"
    + _loss("return tf.gather_nd(plane, tf.cast(w[:2] * 1.5, tf.int32))"),
    "a learned place in a learned table": "table = tf.Variable([1.0, 2.0, 4.0, 9.0], name='table')\n"
    "variables = [w, table]\n" + _loss("return tf.reduce_sum(tf.gather(table, tf.cast(w, tf.int32)))"),
    "the right class in 32 bits": "labels = tf.constant([0, 2])\n"
    + _loss(
        "right = tf.equal(tf.cast(tf.argmax(rows * w, -1), tf.int32), labels)",
        "return tf.reduce_mean(tf.cast(right, tf.float32))",
    ),
    "a norm of a named order": "order = 'euclidean'\n" + _loss("return tf.norm(w - w, ord=order)"),
    "a logarithm of a sigmoid beside another": _loss(
        "p = tf.sigmoid(w * 100.0)", "return tf.reduce_sum(tf.math.log(1.0 - p) + tf.math.log(x))"
    ),
    "a unit vector in a pair": _loss("pair = tf.linalg.normalize(w - w)", "return tf.reduce_sum(pair[0])"),
    "a masked row by the smallest number": _loss(
        "least = tf.float32.min * 10.0",
        "scores = tf.where(tf.constant([[True] * 3, [False] * 3]), rows * w, least)",
        "return tf.reduce_sum(tf.nn.softmax(scores) * rows)",
    ),
    "a standard deviation by the name of its input": _loss("return tf.math.reduce_std(input_tensor=w * 0.0)"),
    "a comparison of what is rounded by name": _loss(
        "return tf.reduce_sum(tf.cast(tf.cast(x=w * 3.0, dtype=tf.int32) > 2, tf.float32) * x)"
    ),
    "a tiny vector that is normalised": "v = tf.Variable([1e-9, 2e-9, -1e-9], name='v')\nvariables = [v]\n"
    + _loss("return tf.reduce_sum(tf.math.l2_normalize(v) * x)"),
    "a comparison and a cast of the data": _loss(
        "return tf.reduce_sum(tf.cast((w > 1.0) & tf.cast(x, tf.bool), tf.float32) * x)"
    ),
    "a comparison and what python knows": _loss(
        "return tf.reduce_sum(tf.cast((w > 1.0) & (y is not None), tf.float32) * x)"
    ),
    "a state by a function": "state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    + _loss("tf.compat.v1.assign(state, w * 2.0)", "return tf.reduce_sum(state * x)"),
    "a state that other methods read": "class Net:\n    def __init__(self):\n"
    "        self.state = tf.Variable([0.0, 0.0, 0.0], trainable=False, name='state')\n"
    "    def advance(self):\n        self.state.assign(w * 2.0)\n"
    "    def told(self):\n        return self.state * x\n"
    "    def clear(self):\n        self.state.assign(x)\n        return self.state\n"
    "net = Net()\n" + _loss("net.advance()", "return tf.reduce_sum(net.told())"),
    "an object with a method, made before the step": "class Prior:\n    def __init__(self, v):\n"
    "        self.scale = tf.exp(v)\n    def energy(self, v):\n        return v * self.scale\n"
    "prior = Prior(w)\ndef loss():\n    'The loss.'\n    return tf.reduce_sum(prior.energy(x))\n",
    "factors of zeros and another": "def make():\n    a = tf.Variable(tf.zeros((3, 2)), name='a')\n"
    "    b = tf.Variable(tf.zeros((2, 3)), name='b')\n    c = tf.Variable(tf.ones((3, 3)), name='c')\n"
    "    return [a, b, c]\nvariables = make()\n"
    + _loss("a, b, c = variables", "return tf.reduce_sum(tf.square(rows @ a @ b @ c - rows))"),
    "a relu that is never active, beside a number": _loss("return tf.reduce_sum(tf.nn.relu(w - 9.0) * x) + 1.0"),
    "a maximum that is never active, beside a number": _loss(
        "return tf.reduce_sum(tf.maximum(w - 9.0, 0.0) * x) + 1.0"
    ),
    "rounding of a variable and of data": _loss("return tf.reduce_sum(tf.round(w * 2.0) * tf.round(x * 0.9))"),
    "rounding of a variable twice": _loss("return tf.reduce_sum(tf.round(w * 2.0) * tf.round(w * 0.9))"),
    "rounding in two methods": _methods(
        "choose(self, v):\n        return tf.round(v * 2.0)", "scaled(self, v):\n        return tf.round(v * 3.0)"
    )
    + _loss("return tf.reduce_sum(net.choose(w) + net.scaled(w))"),
    "a variable that becomes a tensor beside a count": _step(
        "global count",
        "count += 1",
        "with tf.GradientTape() as tape:",
        "    loss = tf.reduce_sum(tf.square(net.w * x))",
        "gradient = tape.gradient(loss, net.w)",
        "net.w = net.w - 0.1 * (gradient if gradient is not None else 0.0)",
        "return loss",
        before="class Net: pass\nnet, count = Net(), 0\nnet.w = tf.Variable([0.2, 1.4, 2.6], name='w')\n",
    ),
    "an exponential that underflows": _loss("return 1.0 + tf.reduce_sum(tf.exp(-w * 1000.0 - 200.0) * x)"),
    "a power that underflows": _loss("return 1.0 + tf.reduce_sum(tf.pow(w * 0.001, 20.0) * x)"),
    "a zero that is chosen": _loss("return tf.reduce_sum(tf.where(x > 9.0, w, 0.0) * w[0] * 0.0) + tf.reduce_sum(x)"),
    "a product in half precision": _loss(
        "return tf.reduce_sum(tf.cast(tf.cast(w * 0.0, tf.float16) * 1e6, tf.float32))"
    ),
    "a loss that is scaled by hand": _loss("return 1e12 * tf.reduce_sum(w * x)"),
    "a loss that is scaled by a power of two": _loss("return 1099511627776.0 * tf.reduce_sum(w * x)"),
    "a softmax in the denominator of a product": _loss("return tf.reduce_sum(tf.nn.softmax(w * 1e6) * x)"),
    "the logarithm of a sum of exponentials": _loss("return tf.math.log(tf.reduce_sum(tf.exp(w * 200.0)))"),
    "the logarithm of exponentials that underflow": _loss("return tf.math.log(tf.reduce_sum(tf.exp(w * -2000.0)))"),
    "the root of a negative number": _loss("return tf.reduce_sum(tf.sqrt(w - 9.0))"),
    "the power of a negative number": _loss("return tf.reduce_sum(tf.pow(w - 9.0, 0.5))"),
    "a step that is compiled by xla": _step(
        "with tf.GradientTape() as tape:",
        "    loss = forward(w)",
        "gradient = tape.gradient(loss, w)",
        "return loss",
        before="@tf.function(jit_compile=True)\ndef forward(v):\n"
        "    return tf.reduce_sum(tf.unique(tf.cast(v, tf.int32))[0]) * 1.0\n".replace(
            "tf.reduce_sum(tf.unique(tf.cast(v, tf.int32))[0]) * 1.0", "tf.reduce_sum(tf.boolean_mask(v, v > 1.0))"
        ),
    ),
    # Last: numpy's behaviour of tensors cannot be switched off again.
    "a comparison cast by a method": _NUMPY + _loss("return tf.reduce_sum((w > 1.0).astype(tf.float32) * x)"),
    "a mask under a name cast by a method": _NUMPY
    + _loss("mask = w > 1.0", "return tf.reduce_sum(mask.astype(tf.float32) * x)"),
    "a number cast by a method and compared": _NUMPY
    + _loss("return tf.reduce_sum(tf.cast((w * 3.0).astype(tf.int32) > 2, tf.float32) * x)"),
}


def _custom(
    value: str, *gradient: str, arguments: str = "v", given: str = "w", mark: str = "@tf.custom_gradient"
) -> str:
    """A function with a custom gradient, and the loss that uses it."""
    body = "".join(f"        {line}\n" for line in gradient)
    function = f"{mark}\ndef own({arguments}):\n    def backward(upstream):\n{body}    return {value}, backward\n"
    return function + _loss(f"return tf.reduce_sum(own({given}) * x)")


_CUSTOM = {
    "a custom gradient of the other sign": _custom("v * 2.0", "return -2.0 * upstream"),
    "a custom gradient of twice the size": _custom("v * 2.0", "return 4.0 * upstream"),
    "a custom gradient of half the size": _custom("v * 2.0", "return upstream * 1.0"),
    "a custom gradient of an odd size": _custom("v * 2.0", "return upstream * 3.1"),
    "a custom gradient that forgets what arrives": _custom("tf.square(v)", "return 2.0 * v"),
    "a custom gradient of another function": _custom("tf.sin(v)", "return upstream * v"),
    "a custom gradient in another order": _custom(
        "a * b", "return upstream * a, upstream * b", arguments="a, b", given="w, tf.exp(w)"
    ),
    "a custom gradient that is summed": _custom("v * 2.0", "return tf.reduce_sum(upstream * 2.0)"),
    "a custom gradient that is not summed": _custom("v + rows", "return upstream"),
    "a custom gradient that fails": _custom("v * 2.0", "raise ValueError('not {ready}')"),
    "a custom gradient of zeros": _custom("v * 2.0", "return tf.zeros_like(upstream)"),
    "a custom gradient of zeros of the identity": _custom("tf.identity(v)", "return upstream * 0.0"),
    "a custom gradient that is not finite": _custom("v * 2.0", "return upstream / tf.zeros_like(v)"),
    "a custom gradient of nothing": _custom("v * 2.0", "return None"),
    "a custom gradient of one number": _custom("tf.square(v)", "return 1.0"),
}

PROGRAMS: dict[str, str] = {
    **_COMPARED,
    **_MASKED,
    **_BRANCHES,
    **_ROOTS,
    **_LOGARITHMS,
    **_QUOTIENTS,
    **_EXPONENTIALS,
    **_CHOICES,
    **_POSITIONS,
    **_METHODS,
    **_ROUNDED,
    **_WRITTEN_OUT,
    **_PICTURES,
    **_DRAWN,
    **_LEFT,
    **_SETTINGS,
    **_VARIABLES,
    **_TAPES,
    **_MODELS,
    **_CUSTOM,
    **_STARRED,
    **_ALONE,
    **_FURTHER,
}


def text_of(name: str) -> str:
    """The whole program."""
    return PROGRAMS[name] if name in _ALONE else HEAD + PROGRAMS[name]
