"""Choices that one method makes and another takes."""

from __future__ import annotations

from tests.recordings.programs.text import GATED, loss, methods

METHODS = {
    "a choice of the smallest along a given axis": methods(
        "choose(self, scores):\n        return tf.argmin(scores * 2.0, axis=1)",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3, axis=-1, dtype=tf.float32)",
    )
    + GATED,
    "a choice along the first of two axes": methods(
        "choose(self, scores):\n        return tf.argmax(scores)",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 2)",
    )
    + loss("return tf.reduce_sum(net.gates(net.choose(rows * w)) * tf.transpose(rows))"),
    "a choice of one vector": methods(
        "choose(self, scores):\n        return tf.argmax(scores)",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3)",
    )
    + loss("return tf.reduce_sum(net.gates(net.choose(w)) * x)"),
    "a choice that two methods take": methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3)",
        "looked_up(self, chosen):\n        return tf.gather(x, chosen)",
    )
    + loss("chosen = net.choose(rows * w)", "return tf.reduce_sum(net.gates(chosen) * net.looked_up(chosen)[:, None])"),
    "a choice that is not returned alone": methods(
        "choose(self, scores):\n        best = tf.argmax(scores, axis=-1)\n        return best, scores",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3)",
    )
    + loss("chosen, scores = net.choose(rows * w)", "return tf.reduce_sum(net.gates(chosen) * rows)"),
    "a choice that is returned in a pair": methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1), scores",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3)",
    )
    + loss("return tf.reduce_sum(net.gates(net.choose(rows * w)[0]) * rows)"),
    "a choice that is kept in an attribute": methods(
        "choose(self, scores):\n        self.best = tf.argmax(scores, axis=-1)",
        "gates(self):\n        return tf.one_hot(self.best, 3)",
    )
    + loss("net.choose(rows * w)", "return tf.reduce_sum(net.gates() * rows)"),
    "a choice that is taken from an attribute": methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "gates(self):\n        return tf.one_hot(self.best, 3)",
    )
    + loss("net.best = net.choose(rows * w)", "return tf.reduce_sum(net.gates() * rows)"),
    "a choice that is used twice there": methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "gates(self, chosen):\n        print(chosen.shape)\n        return tf.one_hot(chosen, 3)",
    )
    + GATED,
    "a choice that looks up along the first axis": methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "looked_up(self, chosen):\n        return tf.gather(x, chosen, axis=0)",
    )
    + loss("return tf.reduce_sum(net.looked_up(net.choose(rows * w)))"),
    "a choice that looks up in a batch": methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "looked_up(self, chosen):\n        return tf.gather(rows, chosen, batch_dims=1)",
    )
    + loss("return tf.reduce_sum(net.looked_up(net.choose(rows * w)))"),
    "a choice that looks up in columns": methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "looked_up(self, chosen):\n        return tf.gather(rows, chosen, axis=1)",
    )
    + loss("return tf.reduce_sum(net.looked_up(net.choose(rows * w)))"),
    "a choice that is shifted there": methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "gates(self, chosen):\n        return tf.one_hot(chosen + 1, 4)",
    )
    + loss("return tf.reduce_sum(net.gates(net.choose(rows * w))[:, :3] * rows)"),
    "a choice with other values": methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3, 2.0, -1.0)",
    )
    + GATED,
    "a choice by a subscript": methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "gates(self, chosen):\n        return tf.one_hot(chosen[0], 3)",
    )
    + loss("return tf.reduce_sum(net.gates([net.choose(rows * w)]) * rows)"),
    "a choice on the line of its method": methods(
        "choose(self, scores): return tf.argmax(scores * 2.0, axis=-1)",
        "gates(self, chosen):\n        return tf.one_hot(chosen, 3)",
    )
    + GATED,
    "a choice that a function looks up": methods(
        "choose(self, scores):\n        return tf.argmax(scores, axis=-1)",
        "looked_up(self, chosen):\n        at = chosen\n        return tf.nn.embedding_lookup(rows[:, :2], ids=at)",
    )
    + loss("return tf.reduce_sum(net.looked_up(net.choose(rows[:, :2] * w[:2])))"),
}
