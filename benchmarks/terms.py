"""The cost of the gradient of each term of a loss, in `explain` and in the recorded steps of a training.

    python -m benchmarks.terms [--terms 2 4 8] [--repeats 5]

The model is a multi-layer perceptron with as many heads as there are terms. Prints ratios: the time of `explain` with
`terms=True` to that without, for the whole call including tracing and compilation; and the time of a recorded step that
measures terms to one that does not, the median over a training in which every step is recorded.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from typing import Any

import keras
import numpy as np

import tb_gradflow
from benchmarks.stopwatch import Stopwatch

_WIDTH, _ROWS = 512, 64


def heads(count: int) -> Any:
    x = keras.Input((_WIDTH,))
    h = x
    for _ in range(4):
        h = keras.layers.Dense(_WIDTH, "relu")(h)
    model = keras.Model(x, [keras.layers.Dense(1, name=f"head_{number}")(h) for number in range(count)])
    model.compile("adam", ["mse"] * count, jit_compile=False)
    return model


def explained(model: Any, x: Any, y: Any, *, terms: bool) -> float:
    began = time.perf_counter()
    tb_gradflow.explain(model, x, y, terms=terms)
    return time.perf_counter() - began


def recorded(count: int, x: Any, y: Any, *, terms: bool) -> float:
    """Seconds of a recorded step; the first ones compile."""
    watch, model = Stopwatch(), heads(count)
    with tempfile.TemporaryDirectory() as log:
        recorder = tb_gradflow.GradFlowCallback(log, update_freq=1, terms=terms, catch_nonfinite=False)
        model.fit(x, y, batch_size=_ROWS, epochs=2, verbose=0, callbacks=[watch, recorder])
    return statistics.median(watch.seconds[3:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--terms", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print("terms  explain  recorded step")
    for count in options.terms:
        x = np.random.default_rng(1).normal(size=(_ROWS * 16, _WIDTH)).astype("float32")
        y = [x[:, :1]] * count
        model, batch = heads(count), (x[:_ROWS], [each[:_ROWS] for each in y])
        explained(model, *batch, terms=True)
        looks, steps = [], []
        for _ in range(options.repeats):
            looks.append(explained(model, *batch, terms=True) / explained(model, *batch, terms=False))
            steps.append(recorded(count, x, y, terms=True) / recorded(count, x, y, terms=False))
        print(f"{count:>5}  {statistics.median(looks):>6.2f}x  {statistics.median(steps):>12.2f}x")


if __name__ == "__main__":
    main()
