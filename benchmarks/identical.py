"""Checks on random programs how often a training with the recorder is not bit-identical to one without it.

    python -m benchmarks.identical [--programs 50] [--first 0] [--layers]

Each program is a random graph of elementwise ops, products, normalisations and sums, with one of six optimizers,
trained for sixteen steps; with `--layers`, a random model of Keras's layers, optimizers and losses, trained for twelve.
It is trained twice without the recorder, once with every step recorded, and once with all steps but the first one
monitored. TensorFlow runs one op at a time here. With more threads two plain trainings may differ from each other: a
sum of three or more gradients starts with whichever is ready first.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

from benchmarks.random_layers import random_layers
from tb_gradflow import GradFlowCallback

ROWS, WIDTH, BATCH, EPOCHS = 64, 4, 8, 2

# More than there are: the first step alone is recorded.
EVERY = 1000

ONE: tuple[Callable[[Any], Any], ...] = (
    lambda t: t * 2.0,
    lambda t: t * -0.3,
    lambda t: t + 0.1,
    lambda t: t / 3.0,
    lambda t: -t,
    lambda t: 1.0 - t,
    lambda t: t**2,
    tf.square,
    tf.abs,
    tf.tanh,
    tf.sigmoid,
    tf.nn.relu,
    tf.nn.gelu,
    tf.nn.softplus,
    tf.nn.softmax,
    lambda t: tf.exp(-tf.square(t)),
    lambda t: 1.0 / (1.0 + tf.square(t)),
    lambda t: tf.sqrt(tf.square(t) + 1.0),
    lambda t: tf.math.log(tf.square(t) + 0.5),
    lambda t: (t - tf.reduce_mean(t, -1, keepdims=True)) * tf.math.rsqrt(tf.math.reduce_variance(t) + 1e-3),
    lambda t: tf.concat([t[:, :3], t[:, 3:] * 2.0], 1),
    lambda t: tf.transpose(tf.transpose(t) * 0.7),
    lambda t: tf.reshape(tf.reshape(t, [-1]) * 0.9, tf.shape(t)),
)
TWO: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a - b,
    lambda a, b: a / (1.0 + tf.square(b)),
    lambda a, b: tf.add_n([a, b, a]),
    lambda a, b: (a * 0.5) @ tf.transpose(b / 2.0) @ a * 0.1,
    lambda a, b: a * 0.3 + b * 0.7,
    lambda a, b: tf.where(a > 0.0, a, b),
    lambda a, b: a * tf.reduce_mean(b),
    tf.maximum,
)
OPTIMIZERS: tuple[Callable[[], Any], ...] = (
    lambda: keras.optimizers.SGD(1e-3),
    lambda: keras.optimizers.SGD(1e-3, momentum=0.9, nesterov=True),
    lambda: keras.optimizers.Adam(1e-3),
    lambda: keras.optimizers.Adam(1e-3, global_clipnorm=1.0, use_ema=True),
    lambda: keras.optimizers.AdamW(1e-3, clipnorm=1.0),
    lambda: keras.optimizers.RMSprop(1e-3),
)
LOSSES: tuple[Any, ...] = (
    "mse",
    "mae",
    "huber",
    lambda y, p: tf.reduce_sum((y - p) ** 2) / 32.0,
    lambda y, p: tf.reduce_mean(tf.square(p - y)) * 0.5 + 0.1 * tf.reduce_mean(tf.abs(p)),
)


class Program(keras.Model):
    """The random program of a seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def build(self, shape: Any) -> None:
        self.kernels = [self.add_weight(shape=(WIDTH, WIDTH), name=f"kernel{i}") for i in range(3)]
        self.vectors = [self.add_weight(shape=(WIDTH,), name=f"vector{i}", initializer="ones") for i in range(2)]

    def call(self, x: Any) -> Any:
        draw = random.Random(self.seed)
        made = [
            x @ self.kernels[0] * 0.5,
            tf.nn.bias_add(x @ self.kernels[1], self.vectors[0]),
            x @ self.kernels[2] * self.vectors[1],
        ]
        for _ in range(draw.randint(4, 14)):
            if draw.random() < 0.5:
                made.append(draw.choice(ONE)(draw.choice(made[-4:])))
            else:
                made.append(draw.choice(TWO)(draw.choice(made[-4:]), draw.choice(made[-4:])))
        return made[-1] + 0.01 * tf.add_n(made[:3])


class Losses(keras.callbacks.Callback):
    def on_train_begin(self, logs: Any = None) -> None:
        self.values: list[float] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.values.append((logs or {})["loss"])


def random_ops(seed: int) -> tuple[Any, Any, Any, Any]:
    """A compiled model, and inputs, targets and no sample weights to train it with."""
    draw = random.Random(seed + 10**6)
    model = Program(seed)
    model.compile(draw.choice(OPTIMIZERS)(), draw.choice(LOSSES), metrics=draw.choice([None, ["mae"]]))
    numbers = np.random.default_rng(seed)
    x, y = (numbers.normal(size=(ROWS, WIDTH)).astype("float32") for _ in range(2))
    return model, x, y, None


def train(make: Callable[[int], tuple[Any, Any, Any, Any]], seed: int, *callbacks: Any) -> list[Any]:
    """The loss of every step, and the weights in the end."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(seed)
    model, x, y, weights = make(seed)
    losses = Losses()
    fit = {"batch_size": BATCH, "epochs": EPOCHS, "verbose": 0, "shuffle": False}
    model.fit(x, y, sample_weight=weights, callbacks=[*callbacks, losses], **fit)
    return [np.array(losses.values), *(weight.numpy() for weight in model.weights)]


def same(one: list[Any], other: list[Any]) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first program")
    parser.add_argument("--layers", action="store_true", help="random models of Keras layers")
    options = parser.parse_args()
    tf.config.threading.set_inter_op_parallelism_threads(1)
    make = random_layers if options.layers else random_ops
    by_itself: list[int] = []
    differ: dict[int, list[int]] = {1: [], EVERY: []}
    for seed in range(options.first, options.first + options.programs):
        plain = train(make, seed)
        if not same(plain, train(make, seed)):
            by_itself.append(seed)
            continue
        for every, found in differ.items():
            with tempfile.TemporaryDirectory() as directory:
                if not same(plain, train(make, seed, GradFlowCallback(directory, update_freq=every))):
                    found.append(seed)
    print(f"{options.programs} programs, TensorFlow {tf.__version__}, Keras {keras.__version__}")
    print(f"differ with each step recorded: {len(differ[1])} {differ[1]}")
    print(f"differ with the first step recorded, the others monitored: {len(differ[EVERY])} {differ[EVERY]}")
    print(f"differ between two plain trainings: {len(by_itself)} {by_itself}")


if __name__ == "__main__":
    main()
