"""The cost of the gradient of each batch row in `explain`, and of the ranges of forward values in a training.

    python -m benchmarks.examples [--rows 8 32 128] [--repeats 3]

The model is a multi-layer perceptron that returns the mean and the log-variance of a normal distribution. Prints
ratios: the time of `explain` with `examples=True` to that without, for the whole call; and the time of a recorded step
to that of one that does not measure the input ranges of exponentials, logarithms, roots and divisions.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from typing import Any
from unittest import mock

import keras
import numpy as np

import tb_gradflow
from benchmarks.stopwatch import Stopwatch
from tb_gradflow.trace.step import value_ranges

_WIDTH, _ROWS = 512, 64


def likelihood(wanted: Any, told: Any) -> Any:
    mean, logvar = told[:, :1], told[:, 1:]
    return keras.ops.mean(keras.ops.square(wanted - mean) / keras.ops.exp(logvar) + logvar)


def model_of_density() -> Any:
    x = keras.Input((_WIDTH,))
    h = x
    for _ in range(4):
        h = keras.layers.LayerNormalization()(keras.layers.Dense(_WIDTH, "relu")(h))
    model = keras.Model(x, keras.layers.Dense(2)(h))
    model.compile("adam", likelihood, jit_compile=False)
    return model


def explained(model: Any, x: Any, *, examples: bool) -> float:
    began = time.perf_counter()
    tb_gradflow.explain(model, x, x[:, :1], examples=examples)
    return time.perf_counter() - began


def recorded(x: Any, *, most: int) -> float:
    """Seconds of a recorded step that measures at most so many ranges; the first ones compile."""
    watch, model = Stopwatch(), model_of_density()
    with tempfile.TemporaryDirectory() as log, mock.patch.object(value_ranges, "MOST_RANGES", most):
        recorder = tb_gradflow.GradFlowCallback(log, update_freq=1, catch_nonfinite=False)
        model.fit(x, x[:, :1], batch_size=_ROWS, epochs=2, verbose=0, callbacks=[watch, recorder])
    return statistics.median(watch.seconds[3:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[8, 32, 128])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    x = np.random.default_rng(1).normal(size=(max(*options.rows, _ROWS * 16), _WIDTH)).astype("float32")
    model = model_of_density()
    explained(model, x[:8], examples=True)
    print("rows  explain with examples")
    for rows in options.rows:
        ratios = [
            explained(model, x[:rows], examples=True) / explained(model, x[:rows], examples=False)
            for _ in range(options.repeats)
        ]
        print(f"{rows:>4}  {statistics.median(ratios):>20.2f}x", flush=True)
    pairs = [(recorded(x, most=value_ranges.MOST_RANGES), recorded(x, most=0)) for _ in range(options.repeats)]
    print(f"recorded step with ranges: {statistics.median(one / other for one, other in pairs):.3f}x")


if __name__ == "__main__":
    main()
