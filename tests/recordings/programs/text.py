"""How a program begins; its function `loss` or `step`, and a class that chooses."""

from __future__ import annotations

HEAD = """
import tensorflow as tf

w = tf.Variable([0.2, 1.4, 2.6], name="w")
x, y = tf.constant([1.0, 2.0, 3.0]), tf.constant([0.5, 0.1, -0.4])
rows = tf.constant([[1.0, 0.2, 0.3], [0.1, 2.0, 1.0]])
allowed = tf.constant([True, False, True])
"""


def loss(*lines: str) -> str:
    return "def loss():\n" + "".join(f"    {line}\n" for line in lines)


def step(*lines: str, before: str = "") -> str:
    return before + "def step():\n" + "".join(f"    {line}\n" for line in lines)


def methods(choose: str, *others: str) -> str:
    """A class with one method that chooses, and others that take what it chose."""
    return "class Net:\n" + "".join(f"    def {each}\n" for each in (choose, *others)) + "net = Net()\n"


GATED = loss("return tf.reduce_sum(net.gates(net.choose(rows * w)) * rows)")
