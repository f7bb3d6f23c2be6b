"""Comparisons, masks, and choices between branches."""

from __future__ import annotations

from tests.recordings.programs.text import loss

COMPARED = {
    "both of two comparisons": loss("return tf.reduce_sum(tf.cast((w > 1.0) & (w < 2.0), tf.float32) * x)"),
    "both of two, as functions": loss(
        "return tf.reduce_sum(tf.cast(tf.logical_and(w > 1.0, w <= 2.0), tf.float32) * x)"
    ),
    "one of two comparisons": loss(
        "return tf.reduce_sum(tf.cast(tf.logical_or(tf.less(w, 1.0), tf.greater_equal(w, 2.0)), tf.float32) * x)"
    ),
    "not a comparison": loss("return tf.reduce_sum(tf.cast(~(w > 1.0), tf.float32) * x)"),
    "not a comparison, as a function": loss(
        "return tf.reduce_sum(tf.cast(tf.logical_not(tf.greater(w, 1.0)), tf.float32) * x)"
    ),
    "a comparison or a mask of the data": loss("return tf.reduce_sum(tf.cast((w > 1.0) | allowed, tf.float32) * x)"),
    "a comparison and a mask that is computed there": loss(
        "return tf.reduce_sum(tf.cast((w > 1.0) & tf.greater(x, y), tf.float32) * x)"
    ),
    "a comparison and what is no condition": loss(
        "return tf.reduce_sum(tf.cast((w > 1.0) & tf.constant([True, True, False]), tf.float32) * x)"
    ),
    "not what is no comparison": loss(
        "on = tf.math.is_finite(tf.math.log(w - 1.0))",
        "return tf.reduce_sum(tf.cast(~on & (w > 0.0), tf.float32) * x)",
    ),
    "equal numbers": loss("return tf.reduce_sum(tf.cast(tf.equal(w, 1.0), tf.float32) * x)"),
    "different numbers": loss("return tf.reduce_sum(tf.cast(w != 1.0, tf.float32) * x)"),
    "whole numbers that are compared": loss(
        "level, most = tf.cast(w * 3.0, tf.int32), tf.constant([1, 2, 9])",
        "return tf.reduce_sum(tf.cast(level > most, tf.float32) * x)",
    ),
    "a whole number under a name": loss(
        "level = tf.cast(w * 3.0, tf.int32)", "return tf.reduce_sum(tf.cast(level > 2, tf.float32) * x)"
    ),
    "rounded values that are compared": loss("return tf.reduce_sum(tf.cast(tf.round(w * 3.0) < 5.0, tf.float32) * x)"),
    "a comparison cast to an integer": loss(
        "return tf.reduce_sum(tf.cast(tf.cast(w > 1.0, tf.int32), tf.float32) * x)"
    ),
    "a comparison that a function returns": "def on(v):\n    return v > 1.0\n"
    + loss("return tf.reduce_sum(tf.cast(on(w), tf.float32) * x)"),
    "a comparison with zero on the left": loss("return tf.reduce_sum(tf.cast(0.0 < w, tf.float32) * x)"),
    "a comparison that is an argument": "def counted(on):\n    return tf.reduce_sum(tf.cast(on, tf.float32) * x)\n"
    + loss("return counted(w > 1.0)"),
    "a chain of comparisons": loss("return tf.reduce_sum(tf.where(tf.logical_and(w > 1.0, x > y), x, y))"),
}

MASKED = {
    "values along an axis": loss("return tf.reduce_sum(tf.boolean_mask(x, w > 1.0, axis=0))"),
    "values by a named mask": loss("return tf.reduce_sum(tf.boolean_mask(x, mask=w > 1.0))"),
    "a sum of kept values": loss("kept = tf.boolean_mask(x, w > 1.0)", "return tf.reduce_sum(kept)"),
    "a mean of kept values": loss("kept = tf.boolean_mask(x, w > 1.0)", "return tf.reduce_mean(kept)"),
    "kept values that are used twice": loss(
        "kept = tf.boolean_mask(x, w > 1.0)", "return tf.reduce_sum(kept) / tf.norm(kept)"
    ),
    "kept values that are squared first": loss(
        "kept = tf.boolean_mask(x, w > 1.0)", "return tf.reduce_sum(tf.square(kept))"
    ),
    "kept values in an attribute": "class State: pass\nstate = State()\n"
    + loss("state.kept = x[w > 1.0]", "return tf.reduce_sum(state.kept)"),
    "a sum along an axis": loss("return tf.reduce_sum(x[w > 1.0], axis=0)"),
    "the largest of some values": loss("return tf.reduce_max(x[w > 1.0])"),
    "a mean in a lambda": "loss = lambda: tf.reduce_mean(x[w > 1.0])\n",
    "a mask under a name": loss("mask = w > 1.0", "return tf.reduce_sum(tf.cast(mask, tf.float32) * x) / 2.0"),
    "a mask under a name, counted": loss(
        "mask = w > 1.0", "return tf.cast(tf.reduce_sum(tf.cast(mask, tf.int32)), tf.float32)"
    ),
    "a mask that has two values": loss(
        "mask = w > 1.0",
        "total = tf.reduce_sum(tf.cast(mask, tf.float32))",
        "mask = x > 1.0",
        "return total + tf.reduce_sum(tf.cast(mask, tf.float32))",
    ),
    "a mask that selects": loss("mask = w > 1.0", "return tf.reduce_sum(tf.boolean_mask(x, mask))"),
    "a mask that chooses": loss("mask = w > 1.0", "return tf.reduce_sum(tf.where(mask, x, y))"),
    "places where a mask holds": loss("mask = w > 1.0", "return tf.reduce_sum(tf.cast(tf.where(mask), tf.float32))"),
    "places where a condition holds": loss("return tf.reduce_sum(tf.cast(tf.where(w > 1.0), tf.float32))"),
    "a choice between two values": loss("return tf.reduce_sum(tf.where(w > 1.0, x, y))"),
    "a choice between two values in a lambda": "loss = lambda: tf.reduce_sum(tf.where(w > 1.0, x, y))\n",
    "a choice between one and zero": loss("return tf.reduce_sum(x * tf.where(w > 1.0, 1.0, 0.0))"),
    "a choice between zero and one": loss("return tf.reduce_sum(x * tf.where(w > 1.0, 0.0, 1.0))"),
    "a mask of a sequence": loss("return tf.reduce_sum(tf.sequence_mask(tf.cast(w, tf.int32), 4, dtype=tf.float32))"),
    "a mask of one sequence": loss("return tf.reduce_sum(tf.sequence_mask(w[1], 4, tf.float32))"),
    "a mask of a sequence of any length": loss(
        "return tf.reduce_sum(tf.cast(tf.sequence_mask(tf.cast(w, tf.int32)), tf.float32))"
    ),
}

BRANCHES = {
    "branches of a condition": loss("return tf.cond(w[0] > 0.1, lambda: x[0], lambda: y[0])"),
    "branches by name": "def one():\n    return x[0]\ndef other():\n    return y[0]\n"
    + loss("return tf.cond(w[0] < 0.1, one, other)"),
    "branches in a lambda": "loss = lambda: tf.cond(w[0] > 0.1, lambda: x[0], lambda: y[0])\n",
    "branches under a named condition": loss(
        "large = w[0] > 0.1", "return 2.0 * tf.cond(large, lambda: x[0], lambda: y[0])"
    ),
    "branches under a condition that is used twice": loss(
        "large = w[0] > 0.1",
        "first = tf.cond(large, lambda: x[0], lambda: y[0])",
        "return first + tf.cond(large, lambda: x[1], lambda: y[1])",
    ),
    "branches that are computed": "import functools\n"
    + loss("return tf.cond(w[0] > 0.1, functools.partial(tf.identity, x[0]), lambda: y[0])"),
    "branches that are computed, under a named condition": "import functools\n"
    + loss("large = w[0] > 0.1", "return tf.cond(large, functools.partial(tf.identity, x[0]), lambda: y[0])"),
    "one branch of several": loss(
        "low = tf.cond(x[0] > 0.1, lambda: x[0], lambda: y[0])",
        "return low + tf.cond(tf.reduce_all(w > 0.1), lambda: x[0], lambda: y[0])",
    ),
    "an if that returns": loss("if w[0] > 0.1:", "    return x[0]", "else:", "    return y[0]"),
    "an if that returns early": loss("if w[0] > 0.1:", "    return x[0] * 2.0", "return y[0]"),
    "an if that assigns": loss(
        "if w[0] > 0.1:", "    value = x[0] - y[0]", "else:", "    value = y[0]", "return value * 2.0"
    ),
    "an if that assigns again": loss("value = x[0]", "if w[0] > 0.1:", "    value = x[0] - y[0]", "return value"),
    "an if that assigns two names": loss(
        "if w[0] > 0.1:", "    a = x[0]", "    b = x[1]", "else:", "    a = y[0]", "    b = y[1]", "return a + b"
    ),
    "an if that assigns different names": loss(
        "a, b = x[0], y[0]", "if w[0] > 0.1:", "    a = x[1]", "else:", "    b = y[1]", "return a + b"
    ),
    "an if of what is no comparison": loss(
        "if tf.reduce_any(w > 0.1):", "    value = x[0]", "else:", "    value = y[0]", "return value"
    ),
    "an if on one line": loss("value = x[0]", "if w[0] > 0.1: value = y[0]", "return value"),
    "a value by an if in an expression": loss("return x[0] if w[0] > 0.1 else y[0]"),
}

CHOICES = {
    "a division in a branch": loss("return tf.reduce_sum(tf.where(x > 1.5, 1.0 / (x - 1.0) * w, w))"),
    "a division by a function in a branch": loss("return tf.reduce_sum(tf.where(w > 1.0, tf.divide(1.0, w - 0.2), w))"),
    "divisions in both branches": loss("return tf.reduce_sum(tf.where(w > 1.0, 1.0 / (w - 0.2), 1.0 / (w - 1.4)))"),
    "a root in a branch under a name": loss(
        "root = tf.sqrt(w - 1.0)", "return tf.reduce_sum(tf.where(w > 1.0, root, w))"
    ),
    "a root in a branch before its condition": loss(
        "root = tf.sqrt(w - 1.0)", "inside = w > 1.0", "return tf.reduce_sum(tf.where(inside, root, w))"
    ),
    "an angle in a branch": loss("return tf.reduce_sum(tf.where(tf.abs(w) < 1.0, tf.acos(w), w))"),
    "an exponential of a quotient in a branch": loss(
        "return tf.reduce_sum(tf.where(w > 1.0, tf.exp(tf.divide(1.0, w - 0.2)), w))",
    ),
    "an exponential in a branch": loss("return tf.reduce_sum(tf.where(w < 1.0, tf.exp(w * 100.0), w))"),
    "a quotient of an exponential in a branch": loss(
        "gap = w - 0.2", "inside = gap > 0.5", "return tf.reduce_sum(tf.where(inside, tf.exp(1.0 / gap), w))"
    ),
    "an angle at the end": loss("return tf.reduce_sum(tf.acos(w / w))"),
    "a hyperbolic angle at the end": loss("return tf.reduce_sum(tf.math.acosh(w / w))"),
    "an area tangent at the end": loss("return tf.reduce_sum(tf.math.atanh(w / w))"),
    "a masked row": "HIDDEN = -float('inf')\n"
    + loss(
        "scores = tf.where(tf.constant([[True] * 3, [False] * 3]), rows * w, HIDDEN)",
        "return tf.reduce_sum(tf.nn.softmax(scores) * rows)",
    ),
    "a masked row by numpy": "import numpy as np\n"
    + loss(
        "scores = tf.where(tf.constant([[True] * 3, [False] * 3]), rows * w, -np.inf)",
        "return tf.reduce_sum(tf.nn.softmax(scores) * rows)",
    ),
    "a masked row by arithmetic": loss(
        "scores = rows * w + tf.math.log(tf.constant([[1.0] * 3, [0.0] * 3]))",
        "return tf.reduce_sum(tf.nn.softmax(scores) * rows)",
    ),
}
