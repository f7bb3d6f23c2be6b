"""Positions: what chooses, sorts, looks up and counts."""

from __future__ import annotations

from tests.recordings.programs.text import loss

POSITIONS = {
    "ranks from the largest": loss(
        "ranks = tf.argsort(tf.argsort(w * 2.0, direction='DESCENDING'))",
        "return tf.reduce_sum(tf.abs(tf.cast(ranks, tf.float32) - y))",
    ),
    "ranks along the first of two axes": loss(
        "ranks = tf.argsort(tf.argsort(rows * w, axis=0), axis=0)",
        "return tf.reduce_sum(tf.square(tf.cast(ranks, tf.float32) - 0.4))",
    ),
    "ranks under two names": loss(
        "order = tf.argsort(w)",
        "ranks = tf.argsort(order)",
        "return tf.reduce_sum(tf.square(tf.cast(ranks - tf.constant([2, 0, 1]), tf.float32)))",
    ),
    "ranks along different axes": loss(
        "ranks = tf.argsort(tf.argsort(rows * w, axis=0), axis=1)",
        "return tf.reduce_sum(tf.square(tf.cast(ranks, tf.float32) - 0.4))",
    ),
    "ranks along the first of three axes": loss(
        "ranks = tf.argsort(tf.argsort(rows[None] * w, axis=0), axis=0)",
        "return tf.reduce_sum(tf.square(tf.cast(ranks, tf.float32) - 0.4))",
    ),
    "ranks in a lambda": "loss = lambda: tf.reduce_sum(tf.cast(tf.argsort(tf.argsort(w * 2.0)), tf.float32) * y)\n",
    "ranks that select": loss("ranks = tf.argsort(tf.argsort(w))", "return tf.reduce_sum(tf.gather(x, ranks) * y)"),
    "an order": loss("return tf.reduce_sum(tf.gather(x, tf.argsort(w)) * y)"),
    "an order that is used twice": loss(
        "order = tf.argsort(w)", "return tf.reduce_sum(tf.gather(x, tf.argsort(order)) * tf.gather(y, order))"
    ),
    "the position of the largest": loss("return tf.cast(tf.argmax(w), tf.float32)"),
    "the position of the smallest in a row": loss(
        "return tf.reduce_sum(tf.cast(tf.argmin(rows * w, axis=-1), tf.float32))"
    ),
    "the position of the largest under a name": loss(
        "best = tf.argmax(w * 2.0)", "place = tf.cast(best, tf.float32)", "return tf.square(place - 1.0)"
    ),
    "the position of the largest in a lambda": "loss = lambda: tf.cast(tf.argmax(w * 2.0), tf.float32)\n",
    "the position of the largest by keras": "import keras\n"
    + loss("return keras.ops.cast(keras.ops.argmax(w * 1.0, axis=-1), 'float32')"),
    "the position of the largest of all, by keras": "import keras\n"
    + loss("return keras.ops.cast(keras.ops.argmax(w * 1.0), 'float32')"),
    "the negative of a position": loss("return tf.cast(-tf.argmax(w), tf.float32)"),
    "a position that is compared with others": loss(
        "return tf.cast(tf.maximum(tf.argmax(w), tf.constant(1, tf.int64)), tf.float32)"
    ),
    "a position in arithmetic under a name": loss(
        "best = tf.argmax(w)", "return tf.cast(best - tf.constant(1, tf.int64), tf.float32)"
    ),
    "a position in arithmetic in a lambda": "loss = lambda: tf.cast(tf.argmax(w * 2.0) - 1, tf.float32)\n",
    "a position that is used twice": loss(
        "best = tf.argmax(w)", "return tf.cast(best, tf.float32) + tf.gather(x, best)"
    ),
    "a one-hot choice": loss("return tf.reduce_sum(tf.one_hot(tf.argmax(w), 3) * x)"),
    "a one-hot choice of the smallest": loss("return tf.reduce_sum(tf.one_hot(tf.argmin(w * 2.0), 3) * x)"),
    "a one-hot choice under a name": loss("best = tf.argmax(w * 2.0)", "return tf.reduce_sum(tf.one_hot(best, 3) * x)"),
    "a one-hot choice in a lambda": "loss = lambda: tf.reduce_sum(tf.one_hot(tf.argmax(w * 2.0), 3) * x)\n",
    "a one-hot choice among fewer": loss("return tf.reduce_sum(tf.one_hot(tf.argmax(w), 2) * y[:2])"),
    "a one-hot draw": loss("return tf.reduce_sum(tf.one_hot(tf.random.categorical(rows * w, 1)[:, 0], 3) * rows)"),
    "a one-hot draw under a name": loss(
        "drawn = tf.random.categorical(rows * w, 1)",
        "hot = tf.one_hot(tf.squeeze(drawn, -1), 3)",
        "return tf.reduce_sum(hot * rows)",
    ),
    "a one-hot draw in a lambda": "loss = lambda: tf.reduce_sum("
    "tf.one_hot(tf.random.categorical(rows * w, 1)[:, 0], 3) * rows)\n",
    "a one-hot draw of named logits": loss(
        "logits = rows * w", "return tf.reduce_sum(tf.one_hot(tf.random.categorical(logits, 1)[:, 0], 3) * rows)"
    ),
    "one-hot draws of several": loss(
        "return tf.reduce_sum(tf.one_hot(tf.random.categorical(rows * w, 2), 3))"
        " + tf.reduce_sum(tf.one_hot(tf.random.categorical(rows * w, 2), 3)[:, 0] * rows)"
    ),
    "a row that is chosen": loss("return tf.reduce_sum(tf.gather(rows, tf.argmax(w[:2])))"),
    "a row that is chosen of a batch": loss(
        "return tf.reduce_sum(tf.gather(rows, tf.argmax(rows * w, axis=-1), batch_dims=1))"
    ),
    "a column that is chosen": loss("return tf.reduce_sum(tf.gather(rows, tf.argmax(w), axis=1))"),
    "rows that are drawn": loss("return tf.reduce_sum(tf.gather(x, tf.random.categorical(rows * w, 4)))"),
    "a row that is chosen by keras": "import keras\n"
    + loss("return keras.ops.sum(keras.ops.take(rows, keras.ops.argmax(w[:2], axis=-1), axis=0))"),
    "an entry that is chosen by keras": "import keras\n"
    + loss("return keras.ops.sum(keras.ops.take(x, keras.ops.argmax(w * 1.0, axis=-1)))"),
    "a chosen word": "import keras\nembedding = keras.layers.Embedding(3, 2)\n"
    + loss("return tf.reduce_sum(embedding(tf.argmax(w * 2.0)))"),
    "a chosen word under a name": "import keras\nembedding, count = keras.layers.Embedding(3, 2), 3\n"
    + loss("word = tf.argmin(w)", "return tf.reduce_sum(embedding(word))"),
    "a chosen word of two": "import keras\nembedding = keras.layers.Embedding(3, 2)\n"
    + loss("word = tf.argmax(w)", "return tf.reduce_sum(embedding(word)) * tf.reduce_sum(tf.square(embedding(word)))"),
    "a mask of the two largest": loss(
        "_, chosen = tf.math.top_k(w * 2.0, 2)",
        "return tf.reduce_sum(tf.reduce_sum(tf.one_hot(chosen, 3), axis=0) * x)",
    ),
    "a mask of the largest in a lambda": "loss = lambda: tf.reduce_sum("
    "tf.reduce_sum(tf.one_hot(tf.math.top_k(w * 2.0, 2)[1], 3), axis=0) * x)\n",
    "a mask of the largest, used in parts": loss(
        "_, chosen = tf.math.top_k(w, 2)", "return tf.reduce_sum(tf.one_hot(chosen, 3) * rows)"
    ),
    "the largest among more": loss(
        "_, chosen = tf.math.top_k(w, 2)", "return tf.reduce_sum(tf.reduce_sum(tf.one_hot(chosen, 5), axis=0)[:3] * x)"
    ),
    "entries at the largest": loss("_, chosen = tf.math.top_k(w, 2)", "return tf.reduce_sum(tf.gather(x, chosen))"),
    "a mask of the largest that a function makes": "def mask(chosen):\n"
    "    return tf.reduce_sum(tf.one_hot(chosen, 3), axis=0)\n"
    + loss("return tf.reduce_sum(mask(tf.math.top_k(w, 2)[1]) * x)"),
    "a learned place in a table": loss("return tf.reduce_sum(tf.gather(x, tf.cast(w, tf.int32)))"),
    "a learned place that is computed": loss(
        "return tf.reduce_sum(tf.gather(x, tf.cast(tf.floor(w * 0.9), tf.int32)))"
    ),
    "a learned place in a table of rows": loss(
        "at = tf.cast(tf.round(w[:2] / 3.0), tf.int32)", "return tf.reduce_sum(tf.gather(rows, at))"
    ),
    "a learned place in a lambda": "loss = lambda: tf.reduce_sum(tf.gather(x, tf.cast(w, tf.int32)))\n",
    "a learned place along another axis": loss("return tf.reduce_sum(tf.gather(rows, tf.cast(w, tf.int32), axis=1))"),
    "a learned place that another function looks up": "def row(at):\n    return tf.gather(x, at)\n"
    + loss("return tf.reduce_sum(row(tf.cast(w, tf.int32)))"),
    "a learned place, by keras": "import keras\n"
    + loss("return keras.ops.sum(keras.ops.take(x, keras.ops.cast(w, 'int32'), axis=0))"),
    "a learned place in rows, by keras": "import keras\n"
    + loss("return keras.ops.sum(keras.ops.take(rows, keras.ops.cast(w / 3.0, 'int32'), axis=0))"),
    "a learned place in a plane": "plane = tf.reshape(tf.range(36.0), (6, 6))\n"
    + loss("return tf.gather_nd(plane, tf.cast(w[:2], tf.int32))"),
    "a learned place in a plane of three numbers": "cube = tf.reshape(tf.range(64.0), (4, 4, 4))\n"
    + loss("return tf.gather_nd(cube, tf.cast(w, tf.int32))"),
    "a learned place in a plane, in a lambda": "plane = tf.reshape(tf.range(36.0), (6, 6))\n"
    "loss = lambda: tf.gather_nd(plane, tf.cast(w[:2], tf.int32))\n",
    "learned places in a picture": "picture = tf.reshape(tf.range(108.0), (6, 6, 3))\n"
    + loss("at = tf.stack([w, w + 1.0], -1)", "return tf.reduce_sum(tf.gather_nd(picture, tf.cast(at, tf.int32)))"),
    "a bucket": loss("return tf.reduce_sum(tf.gather(x, tf.searchsorted([0.5, 1.5], w)))"),
    "a bucket of named edges": "edges = tf.constant([0.5, 1.5])\n"
    + loss("return tf.reduce_sum(tf.gather(x, tf.searchsorted(sorted_sequence=edges, values=w)))"),
    "a histogram": loss(
        "return tf.reduce_sum(tf.cast(tf.histogram_fixed_width(w, [0.0, 3.0], 4), tf.float32) * tf.range(4.0))"
    ),
    "a histogram of named bounds": "bounds = tf.constant([0.0, 3.0])\n"
    + loss("return tf.cast(tf.histogram_fixed_width(w, bounds)[0], tf.float32)"),
    "a histogram of computed bounds": loss(
        "return tf.cast(tf.histogram_fixed_width(w, tf.stack([0.0, 3.0]), 4)[0], tf.float32)"
    ),
    "a count": loss("return tf.cast(tf.math.count_nonzero(w > 1.0), tf.float32)"),
    "a count of what is not zero": loss("return tf.cast(tf.math.count_nonzero(w * x), tf.float32)"),
    "a count along an axis": loss(
        "return tf.reduce_sum(tf.math.count_nonzero(rows * w > 1.0, axis=-1, dtype=tf.float32))"
    ),
    "the right class": loss(
        "labels = tf.constant([0, 2])",
        "right = tf.equal(tf.argmax(rows * w, axis=-1, output_type=tf.int32), labels)",
        "return tf.reduce_mean(tf.cast(right, tf.float32))",
    ),
    "the right class of one-hot labels": loss(
        "hot = tf.one_hot([0, 2], 3)",
        "return tf.reduce_mean(tf.cast(tf.argmax(hot, -1) == tf.argmax(rows * w, -1), tf.float32))",
    ),
    "the right class without an axis": loss(
        "return tf.reduce_mean(tf.cast(tf.equal(tf.argmax(w), tf.constant(1, tf.int64)), tf.float32))"
    ),
    "the right class in a lambda": "labels = tf.constant([0, 2], tf.int64)\n"
    "loss = lambda: tf.reduce_mean(tf.cast(tf.equal(tf.argmax(rows * w, -1), labels), tf.float32))\n",
    "the right class by keras": "import keras\nlabels = tf.constant([0, 2])\n"
    + loss(
        "scores = rows * w",
        "right = keras.ops.equal(keras.ops.argmax(scores, axis=-1), labels)",
        "return keras.ops.mean(keras.ops.cast(right, 'float32'))",
    ),
    "the right class under a name": loss(
        "best = tf.argmax(rows * w, -1)",
        "return tf.reduce_mean(tf.cast(tf.equal(best, tf.constant([0, 2], tf.int64)), tf.float32))",
    ),
}
