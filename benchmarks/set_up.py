"""The cost of starting: the first recorded step compared with the first plain one, by the size of the graph.

    python -m benchmarks.set_up [50 100 200 400 800] [--resnet50]

The models are chains of that many dense layers with a handwritten normalisation; `--resnet50` adds that model. Each is
trained for a few steps without a recorder, then a fresh copy with one. `traced` is the extra time of the first step
over a later one; `judged` is the diagnosis of the recorded structure, for which the first step waits too. Times are in
seconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow
from benchmarks.models import Made, resnet50
from benchmarks.stopwatch import Stopwatch
from tb_gradflow import GradFlowCallback
from tb_gradflow.store.directory import DirectoryReader, find_runs
from tb_gradflow.store.run import StoredRun

STEPS = 6


class Normalised(keras.layers.Layer):
    """A dense layer whose output is normalised, by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(8)

    def call(self, x: Any) -> Any:
        y = self.dense(x)
        centred = y - tf.reduce_mean(y, -1, keepdims=True)
        return x + tf.nn.gelu(centred * tf.math.rsqrt(tf.reduce_mean(tf.square(centred), -1, keepdims=True) + 1e-6))


def chain(layers: int) -> Callable[[], Made]:
    def made() -> Made:
        model = keras.Sequential([keras.Input((8,)), *(Normalised() for _ in range(layers)), keras.layers.Dense(10)])
        return model, np.random.default_rng(0).normal(size=(16, 8)).astype("float32"), np.arange(16) % 10

    return made


def trained(made: Callable[[], Made], *callbacks: Any) -> list[float]:
    """Seconds of each step."""
    keras.backend.clear_session()
    model, x, y = made()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    watch = Stopwatch()
    data = tf.data.Dataset.from_tensors((x, y)).repeat(STEPS)
    model.fit(data, verbose=0, callbacks=[watch, *callbacks])
    return watch.seconds


def measure(name: str, made: Callable[[], Made]) -> None:
    plain = trained(made)
    with tempfile.TemporaryDirectory() as directory:
        recorded = trained(made, GradFlowCallback(directory, update_freq=1, catch_nonfinite=False))
        log = tb_gradflow.open_log(directory)
        began = time.perf_counter()
        log.report()
        judged = time.perf_counter() - began
        [source] = find_runs(directory).values()
        run = StoredRun(DirectoryReader(source))
        ops = len(run.trace(run.index().session.id, 0).ops)
    print(
        f"| {name} | {ops} | {plain[0]:.2f} | {recorded[0]:.2f} | {recorded[0] / plain[0]:.2f} | {judged:.2f} | "
        f"{statistics.median(plain[2:]) * 1e3:.0f} | {statistics.median(recorded[2:]) * 1e3:.0f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", nargs="*", type=int, default=[50, 100, 200, 400, 800])
    parser.add_argument("--resnet50", action="store_true")
    options = parser.parse_args()
    trained(chain(1))
    print("| model | ops | first plain step | first recorded step | ratio | judged | plain, ms | recorded, ms |")
    print("|---|---|---|---|---|---|---|---|")
    for layers in options.layers:
        measure(f"{layers} layers", chain(layers))
    if options.resnet50:
        measure("ResNet50", resnet50)


if __name__ == "__main__":
    main()
