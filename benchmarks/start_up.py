"""The cost of starting: the first steps of a training with default options, compared with those of the plain program.

    python -m benchmarks.start_up [mlp|cnn|transformer|resnet50|loop|thirty_thousand …] [--pairs 5] [--profile]

Measures from the first call of `fit`, or the first step of a loop, to the end of step 20: the CPU time of all threads
of the process and of its children, and the time. Within that time functions are traced and compiled, and the first ten
steps are recorded. Each training has a process of its own; those with and without the recorder alternate. Prints the
medians of the pairs' ratios, with their quartiles, and of the plain times in seconds. `--profile` prints where Python
spends the time of one recorded training instead.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

STEPS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["mlp", "cnn", "transformer", "resnet50", "loop"])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="print where Python spends the time")
    parser.add_argument("--alone", choices=("plain", "recorded"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone or options.profile:
        [name] = options.models
        print(json.dumps(train(name, recorded=options.alone != "plain", profile=options.profile)))
        return
    print("| model | plain CPU, s | CPU time (quartiles) | time (quartiles) |")
    print("|---|---|---|---|")
    for name in options.models:
        measure(name, options.pairs)


def measure(name: str, pairs: int) -> None:
    measured = [(alone(name, "plain"), alone(name, "recorded")) for _ in range(pairs)]
    plain = statistics.median(before[0] for before, _ in measured)
    ratios = [[after[number] / before[number] for before, after in measured] for number in range(2)]
    print(f"| {name} | {plain:.1f} | {_quartiles(ratios[0])} | {_quartiles(ratios[1])} |", flush=True)


def alone(name: str, way: str) -> Sequence[float]:
    """CPU time and time of a training in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.start_up", name, "--alone", way]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: Sequence[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _quartiles(ratios: Sequence[float]) -> str:
    if len(ratios) < 2:
        return f"{ratios[0]:.2f}"
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def train(name: str, *, recorded: bool, profile: bool = False) -> list[float]:
    with tempfile.TemporaryDirectory() as directory:
        start = looping(directory, recorded) if name == "loop" else fitting(name, directory, recorded)
        profiler = cProfile.Profile()
        if profile:
            profiler.enable()
        cpu, began = _cpu(), time.perf_counter()
        ended = start()
        if profile:
            profiler.disable()
            pstats.Stats(profiler).sort_stats("cumulative").print_stats("tb_gradflow", 60)
        return [ended[0] - cpu, ended[1] - began]


def _cpu() -> float:
    found = os.times()
    return found.user + found.system + found.children_user + found.children_system


Start = Callable[[], tuple[float, float]]
"""Trains; returns the CPU time and the time at the end of the last step that counts."""


def fitting(name: str, directory: str, recorded: bool) -> Start:
    import keras
    import tensorflow as tf

    from benchmarks.models import MODELS, residual, resnet50, transformer

    made: dict[str, Any] = {
        **MODELS,
        "transformer": lambda: transformer(blocks=12),
        "resnet50": lambda: resnet50(size=32, rows=8),
        "thirty_thousand": lambda: residual(260),  # as many ops, 114 of each layer with Adam
    }
    keras.utils.set_random_seed(0)
    model, x, y = made[name]()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = tf.data.Dataset.from_tensors((x, y)).repeat(STEPS + 1)
    ended = []

    class Ends(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if batch == STEPS:
                ended.append((_cpu(), time.perf_counter()))

    callbacks: list[Any] = [Ends()]
    if recorded:
        from tb_gradflow import GradFlowCallback

        callbacks.append(GradFlowCallback(directory))

    def start() -> tuple[float, float]:
        model.fit(data, verbose=0, callbacks=callbacks)
        return ended[0]

    return start


def looping(directory: str, recorded: bool) -> Start:
    """TensorFlow's quickstart for experts."""
    import keras
    import numpy as np
    import tensorflow as tf

    import tb_gradflow

    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Conv2D(32, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10),
        ]
    )
    loss_object = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam()
    train_loss = keras.metrics.Mean()
    train_accuracy = keras.metrics.SparseCategoricalAccuracy()
    images = tf.constant(np.random.default_rng(0).normal(size=(32, 28, 28, 1)).astype("float32"))
    labels = tf.constant(np.arange(32) % 10)

    def train_step(images: Any, labels: Any) -> None:
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = loss_object(labels, predictions)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        train_loss(loss)
        train_accuracy(labels, predictions)

    step = tb_gradflow.watch(directory)(train_step) if recorded else tf.function(train_step)

    def start() -> tuple[float, float]:
        for _ in range(STEPS):
            step(images, labels)
        return _cpu(), time.perf_counter()

    return start


if __name__ == "__main__":
    main()
