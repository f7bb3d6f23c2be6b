"""Rounding, detours through integers, random draws, and functions without a gradient that can be written out."""

from __future__ import annotations

from tests.recordings.programs.text import loss

ROUNDED = {
    "rounding in a lambda": "loss = lambda: tf.reduce_sum(tf.round(w * 2.0))\n",
    "a floor division": loss("return tf.reduce_sum((w * 4.0) // 0.5)"),
    "a remainder of a floor": loss("return tf.reduce_sum(tf.math.floordiv(w, 0.5))"),
    "a detour through integers under a name": loss(
        "whole = tf.cast(w * 9.0, tf.int32)", "return tf.reduce_sum(tf.cast(whole, tf.float32) * x)"
    ),
    "a detour that takes the name of its value": "def quantised(v):\n    v = tf.cast(v, tf.int32)\n"
    "    return tf.cast(v, tf.float32)\n" + loss("return tf.reduce_sum(quantised(w) * x)"),
    "a detour in a lambda": "loss = lambda: tf.reduce_sum(tf.cast(tf.cast(w * 9.0, tf.int32), tf.float32) * x)\n",
    "a detour with arithmetic": loss("return tf.reduce_sum(tf.cast(tf.cast(w * 9.0, tf.int32) + 1, tf.float32) * x)"),
    "a detour through a function": "def whole(v):\n    return tf.cast(v, dtype=tf.int32)\n"
    + loss("return tf.reduce_sum(tf.cast(whole(w), tf.float32) * x)"),
    "a detour through a rounding function": "def whole(v):\n    return tf.cast(tf.round(v), tf.int32)\n"
    + loss("return tf.reduce_sum(tf.cast(whole(w), tf.float32) * x)"),
    "a detour by saturation": loss(
        "return tf.reduce_sum(tf.cast(tf.saturate_cast(w * 9.0, tf.uint8), tf.float32) * x)"
    ),
    "a sign": loss("return tf.reduce_sum(tf.sign(w - 1.0) * x)"),
    "a sign by keras": "import keras\n" + loss("return keras.ops.sum(keras.ops.sign(w - 1.0) * x)"),
}

WRITTEN_OUT = {
    "a grid between learned ends": loss("return tf.reduce_sum(tf.square(tf.linspace(w[0], w[1], 5) - 0.3))"),
    "a grid between learned ends along an axis": loss(
        "return tf.reduce_sum(tf.square(tf.linspace(w, w + 1.0, 5, axis=-1) - 0.3))"
    ),
    "a range of learned length": loss("return tf.reduce_sum(tf.range(0.0, w[2], 0.5))"),
    "a range from a learned start": loss("return tf.reduce_sum(tf.range(w[0], 3.0))"),
    "a range by names": loss("return tf.reduce_sum(tf.range(start=0.0, limit=w[2]))"),
    "a range of one number": loss("return tf.reduce_sum(tf.range(w[2] * 2.0))"),
    "a learned value at a place": loss(
        "return tf.reduce_sum(tf.one_hot([0, 2], 3, on_value=w[0], off_value=0.0) * rows)"
    ),
    "a learned value at a place only": loss(
        "return tf.reduce_sum(tf.one_hot([0, 2], 3, on_value=w[0], dtype=tf.float32) * rows)"
    ),
    "rows in a random order": loss("return tf.reduce_sum(tf.random.shuffle(w) * x)"),
    "rows in a random order, computed": loss("return tf.reduce_sum(tf.random.shuffle(w * 2.0, seed=3) * x)"),
    "rows in a random order with a seed": loss("v = w * 2.0", "return tf.reduce_sum(tf.random.shuffle(v, seed=3) * x)"),
    "counts by a seed": loss("return tf.reduce_sum(tf.random.stateless_poisson([8, 3], seed=(1, 2), lam=tf.exp(w)))"),
    "counts in a lambda": "loss = lambda: tf.reduce_sum(tf.random.poisson([8], tf.exp(w)))\n",
}

DRAWN = {
    "a coin": loss(
        "p = tf.tile(tf.sigmoid(w)[None], [8, 1])",
        "on = tf.cast(p > tf.random.uniform(tf.shape(p)), tf.float32)",
        "return tf.reduce_mean(tf.square(tf.reduce_sum(on, axis=1) - 2.5))",
    ),
    "a coin for each row and column": loss(
        "p = tf.tile(tf.sigmoid(w)[None], [8, 1])",
        "on = tf.random.uniform((8, 3)) < p",
        "error = tf.square(tf.reduce_sum(tf.cast(on, tf.float32), axis=1, keepdims=True) - 2.5)",
        "return tf.reduce_mean(error)",
    ),
    "a coin of fixed chance": loss(
        "on = tf.cast(tf.random.uniform((8, 3)) + w < 0.5, tf.float32)",
        "return tf.reduce_mean(tf.square(tf.reduce_sum(on, axis=1) - 2.5))",
    ),
    "a draw inside the mean": loss(
        "return tf.reduce_mean(tf.gather(x, tf.random.categorical(tf.tile(w[None], [8, 1]) * 2.0, 1)[:, 0]))"
    ),
    "a draw in a lambda": "loss = lambda: tf.reduce_mean("
    "tf.gather(x, tf.random.categorical(tf.tile(w[None], [8, 1]) * 2.0, 1)[:, 0]))\n",
    "a draw whose mean another function takes": "def mean(v):\n    return tf.reduce_mean(v)\n"
    + loss("return mean(tf.gather(x, tf.random.categorical(tf.tile(w[None], [8, 1]), 1)[:, 0]))"),
}
