"""A mask holds some elements of a weight fixed, and Adam moves them. Expect: mask_multiplies_to_zero.

In each iteration a mask selects half of a weight for training. The other half gets a gradient of exactly zero, but Adam
still moves it, because it remembers earlier iterations. Based on a question on Stack Overflow. The fixed program
restores those elements after each update.
"""

from __future__ import annotations

import sys

import numpy as np
import tensorflow as tf

import tb_gradflow

STEPS = 8
MASKS = ([0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0])


class Line:
    """A linear model; each iteration trains some of its weights."""

    def __init__(self) -> None:
        self.w = tf.Variable(tf.zeros(4), name="w")
        self.optimizer = tf.keras.optimizers.Adam(0.1)


def train(log_dir: str, fixed: bool = False) -> Line:
    model = Line()
    w, optimizer = model.w, model.optimizer

    @tb_gradflow.watch(log_dir, update_freq=1, try_fixes=True)
    def iteration(x: tf.Tensor, y: tf.Tensor, mask: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            masked_w = mask * w + tf.stop_gradient(tf.abs(1 - mask) * w)
            loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, masked_w) - y))
        gradients = tape.gradient(loss, [w])
        before = tf.identity(w)
        optimizer.apply_gradients(zip(gradients, [w], strict=True))
        if fixed:
            w.assign(tf.where(mask != 0, w, before))

    data = np.random.default_rng(0).normal(size=(STEPS, 16, 4)).astype(np.float32)
    for number, x in enumerate(data):
        iteration(tf.constant(x), tf.constant(x @ [1.0, -2.0, 0.5, 3.0], tf.float32), tf.constant(MASKS[number % 2]))
    iteration.flush()
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
