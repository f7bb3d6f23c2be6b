"""Healthy trainings of small models: their losses and the norms of their gradients, step by step, and how many of these
steps the monitor would call unusual.

python -m tests.trace.spikes.healthy [STEPS OF EACH] [SEED …]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from tb_gradflow.trace.nonfinite.usual import Usual
from tb_gradflow.trace.nonfinite.watched import every

_AT_ONCE = 4096
"""Steps of one call."""

Data = Callable[[np.random.Generator], tuple[Any, Any]]


def linear(noise: Callable[[np.random.Generator], Any], rows: int = 2000) -> Data:
    def data(random: np.random.Generator) -> tuple[Any, Any]:
        x = random.normal(size=(rows, 8))
        return x, np.tanh(x @ random.normal(size=(8, 1))) + noise(random).reshape(rows, 1)

    return data


def classes(rows: int, *, learnable: float = 1.0, count: int = 4) -> Data:
    """As many rows, of which some have labels that follow from nothing."""

    def data(random: np.random.Generator) -> tuple[Any, Any]:
        x = random.normal(size=(rows, 8))
        label = np.argmax(x @ random.normal(size=(8, count)), axis=1)
        wrong = random.random(rows) > learnable
        return x, np.eye(count)[np.where(wrong, random.integers(0, count, rows), label)]

    return data


def rare(rows: int) -> Data:
    """One class is one row in a hundred."""

    def data(random: np.random.Generator) -> tuple[Any, Any]:
        x = random.normal(size=(rows, 8))
        x[: rows // 100] += 3
        return x, np.eye(2)[(np.arange(rows) < rows // 100).astype(int)]

    return data


def squared(y: Any, output: Any) -> Any:
    return tf.reduce_mean(tf.square(y - output))


def entropy(y: Any, output: Any) -> Any:
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(y, output))


def absolute(y: Any, output: Any) -> Any:
    return tf.reduce_mean(tf.abs(y - output))


def hinge(y: Any, output: Any) -> Any:
    return tf.reduce_mean(tf.nn.relu(1 - (2 * y - 1) * output))


def density(y: Any, output: Any) -> Any:
    """A negative logarithmic likelihood, which may be negative."""
    mean, spread = output[:, :1], tf.nn.softplus(output[:, 1:]) + 0.01
    return tf.reduce_mean(tf.square((y - mean) / spread) / 2 + tf.math.log(spread))


def constant(rate: float) -> Callable[[Any], Any]:
    return lambda step: tf.constant(rate)


def restarts(rate: float) -> Callable[[Any], Any]:
    """A cosine that begins again every thousand steps."""
    return lambda step: rate * 0.5 * (1 + tf.cos(np.pi * tf.cast(step % 1000, tf.float32) / 1000)) + 1e-6


def stairs(rate: float) -> Callable[[Any], Any]:
    return lambda step: rate * 0.1 ** tf.cast(step // 4000, tf.float32)


def warm_up(rate: float) -> Callable[[Any], Any]:
    return lambda step: rate * tf.minimum(1.0, (tf.cast(step, tf.float32) + 1) / 500)


def cyclic(rate: float) -> Callable[[Any], Any]:
    return lambda step: rate * (0.02 + tf.abs(tf.cast(step % 400, tf.float32) / 200 - 1))


def _normal(scale: float) -> Callable[[np.random.Generator], Any]:
    return lambda random: random.normal(size=2000) * scale


def _student(freedom: float) -> Callable[[np.random.Generator], Any]:
    return lambda random: random.standard_t(freedom, 2000) * 0.3


Kind = tuple[str, Data, Callable[[Any, Any], Any], int, int, str, Callable[[Any], Any], float]
"""Name, data, loss, outputs, rows of a batch, optimizer, learning rate, dropout."""

KINDS: tuple[Kind, ...] = (
    ("regression, SGD", linear(_normal(0.3)), squared, 1, 32, "sgd", constant(0.05), 0.0),
    ("regression, momentum", linear(_normal(0.3)), squared, 1, 32, "momentum", constant(0.02), 0.0),
    ("regression, Adam", linear(_normal(0.3)), squared, 1, 32, "adam", constant(0.002), 0.0),
    ("regression, one row", linear(_normal(0.3)), squared, 1, 1, "adam", constant(0.001), 0.0),
    ("regression, four rows, SGD", linear(_normal(0.3)), squared, 1, 4, "sgd", constant(0.02), 0.0),
    ("regression without noise", linear(_normal(0.0)), squared, 1, 32, "adam", constant(0.003), 0.0),
    (
        "regression without noise, all rows",
        linear(lambda r: np.zeros(64), 64),
        squared,
        1,
        64,
        "adam",
        constant(0.01),
        0.0,
    ),
    ("heavy tails, t(3)", linear(_student(3)), squared, 1, 16, "adam", constant(0.001), 0.0),
    ("heavy tails, t(2)", linear(_student(2)), squared, 1, 16, "adam", constant(0.001), 0.0),
    ("heavy tails, t(1.5), absolute", linear(_student(1.5)), absolute, 1, 16, "sgd", constant(0.01), 0.0),
    ("density", linear(_normal(0.1)), density, 2, 32, "adam", constant(0.002), 0.0),
    ("density, t(3)", linear(_student(3)), density, 2, 16, "adam", constant(0.001), 0.0),
    ("classes", classes(4000), entropy, 4, 32, "adam", constant(0.003), 0.0),
    ("classes, SGD", classes(4000), entropy, 4, 32, "sgd", constant(0.1), 0.0),
    ("classes, dropout", classes(4000), entropy, 4, 32, "adam", constant(0.003), 0.4),
    ("classes, overfitted", classes(200, learnable=0.5), entropy, 4, 16, "adam", constant(0.01), 0.0),
    ("classes, overfitted, SGD", classes(200), entropy, 4, 8, "momentum", constant(0.05), 0.0),
    ("classes, overfitted, dropout", classes(200), entropy, 4, 16, "adam", constant(0.005), 0.2),
    ("classes, two rows", classes(4000), entropy, 4, 2, "adam", constant(0.001), 0.0),
    ("classes, noise", classes(4000, learnable=0.8), entropy, 4, 32, "adam", constant(0.002), 0.0),
    ("rare class", rare(4000), entropy, 2, 16, "adam", constant(0.002), 0.0),
    ("hinge", classes(4000, count=2), hinge, 2, 16, "sgd", constant(0.05), 0.0),
    ("restarts, SGD", classes(2000), entropy, 4, 32, "momentum", restarts(0.1), 0.0),
    ("restarts, Adam", classes(400), entropy, 4, 32, "adam", restarts(0.01), 0.0),
    ("restarts, regression", linear(_normal(0.0)), squared, 1, 32, "adam", restarts(0.01), 0.0),
    ("stairs", classes(2000), entropy, 4, 32, "momentum", stairs(0.1), 0.0),
    ("warm-up", classes(2000), entropy, 4, 32, "adam", warm_up(0.01), 0.0),
    ("cyclic", linear(_normal(0.1)), squared, 1, 16, "adam", cyclic(0.01), 0.0),
    ("large rate, Adam", linear(_normal(0.1)), squared, 1, 32, "adam", constant(0.03), 0.0),
    ("sorted data", linear(_normal(0.3)), squared, 1, -32, "adam", constant(0.002), 0.0),
)


def course(kind: Kind, steps: int, seed: int) -> Iterator[Any]:
    """The loss and the norm of the gradient of each step, float32 `[steps, 2]`, in parts."""
    _, data, loss_of, outputs, rows, optimizer, rate_at, dropout = kind
    random = np.random.default_rng(seed)
    x, y = (tf.constant(each, tf.float32) for each in data(random))
    count, batch, in_order = int(x.shape[0]), abs(rows), rows < 0
    shapes = [(8, 16), (16,), (16, 16), (16,), (16, outputs), (outputs,)]
    weights = [
        tf.constant(random.normal(size=each) / np.sqrt(each[0]) * (len(each) > 1), tf.float32) for each in shapes
    ]
    first = [tf.zeros_like(each) for each in weights]

    def gradient(weights: Any, step: Any) -> tuple[Any, Any]:
        chosen = tf.random.stateless_uniform([batch], [seed, step], 0, count, tf.int32)
        if in_order:
            chosen = (step * batch + tf.range(batch)) % count
        with tf.GradientTape() as tape:
            tape.watch(weights)
            hidden = tf.nn.tanh(tf.gather(x, chosen) @ weights[0] + weights[1])
            hidden = tf.nn.relu(hidden @ weights[2] + weights[3])
            if dropout:
                hidden = tf.nn.experimental.stateless_dropout(hidden, dropout, [seed + 1, step])
            loss = loss_of(tf.gather(y, chosen), hidden @ weights[4] + weights[5])
        return loss, tape.gradient(loss, weights)

    def body(step: Any, weights: Any, one: Any, two: Any, seen: Any) -> Any:
        loss, gradients = gradient(weights, step)
        rate, now = rate_at(step), tf.cast(step, tf.float32) + 1
        if optimizer == "sgd":
            moves = gradients
        elif optimizer == "momentum":
            one = [0.9 * m + g for m, g in zip(one, gradients, strict=True)]
            moves = one
        else:
            one = [0.9 * m + 0.1 * g for m, g in zip(one, gradients, strict=True)]
            two = [0.999 * v + 0.001 * g * g for v, g in zip(two, gradients, strict=True)]
            scale = tf.sqrt(1 - 0.999**now) / (1 - 0.9**now)
            moves = [scale * m / (tf.sqrt(v) + 1e-7) for m, v in zip(one, two, strict=True)]
        weights = [w - rate * move for w, move in zip(weights, moves, strict=True)]
        seen = seen.write(step % _AT_ONCE, tf.stack([loss, tf.linalg.global_norm(gradients)]))
        return step + 1, weights, one, two, seen

    @tf.function
    def part(start: Any, weights: Any, one: Any, two: Any) -> Any:
        seen = tf.TensorArray(tf.float32, _AT_ONCE)
        end = start + _AT_ONCE
        _, weights, one, two, seen = tf.while_loop(lambda step, *_: step < end, body, (start, weights, one, two, seen))
        return weights, one, two, seen.stack()

    one, two = first, first
    for start in range(0, steps, _AT_ONCE):
        weights, one, two, seen = part(tf.constant(start), weights, one, two)
        yield seen.numpy()


def alarms(rows: Any) -> list[tuple[int, Any]]:
    """The steps of a course that the monitor calls unusual, as it works in a training."""
    usual, found, begun = Usual(2), [], 0
    for step, values in enumerate(rows):
        if step - begun == every(usual):
            usual.add(rows[begun:step])
            begun = step
        excess = usual.excess(values)
        if excess is not None:
            found.append((step, excess))
            usual.rest()
            begun = step + 1
    return found


def main() -> None:
    steps = int(sys.argv[1]) if sys.argv[1:] else 16 * _AT_ONCE
    total = wrong = 0
    for seed in map(int, sys.argv[2:] or ["1"]):
        for kind in KINDS:
            rows = np.concatenate(list(course(kind, steps, seed)))
            found = alarms(rows)
            total, wrong = total + len(rows), wrong + len(found)
            last = np.median(rows[-500:, 0])
            print(f"{kind[0]}: {len(rows)} steps, loss {rows[0, 0]:.3g} to {last:.3g}, alarms {len(found)}")
            for step, excess in found[:5]:
                print(
                    f"    {step}: {excess.values}, usual {excess.usual}, limit {excess.limit:.3g}, {excess.highest:.3g}"
                )
            sys.stdout.flush()
    print(f"{wrong} alarms in {total} healthy steps")


if __name__ == "__main__":
    main()
