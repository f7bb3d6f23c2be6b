"""What a training costs with the recorder as it is by default, guard and callback included.

    python -m benchmarks.whole [mlp|cnn|lstm|transformer|resnet50 …] [--pairs 40] [--steps 100] [--xla]

Stretches of steps with `GradFlowCallback(log_dir)` and without it take turns within one training, since the machine's
pace changes from one minute to the next by more than is to be measured. The first stretch, in which functions are
compiled and the first ten steps recorded, is left out. Printed are the median of the pairs' ratios with the quartiles,
the ratio of all time with to all time without, how many steps were recorded, and what the recorder says that it cost.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

from benchmarks.models import MODELS
from tb_gradflow import GradFlowCallback, open_log


class InTurns(keras.callbacks.Callback):
    """Lets a recorder hear of the steps of every second stretch alone.

    Attributes:
        stretches: Seconds that each took, those with the recorder first; without what lies between two of them.
    """

    def __init__(self, recorder: GradFlowCallback, length: int) -> None:
        super().__init__()
        self.stretches: list[float] = []
        self._recorder = recorder
        self._length = length
        self._began = 0.0

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        self._recorder.set_model(model)

    def on_train_begin(self, logs: Any = None) -> None:
        self._recorder.on_train_begin(logs)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._recorder.on_epoch_begin(epoch, logs)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch % self._length == 0:
            self._began = time.perf_counter()
        if batch // self._length % 2 == 0:
            self._recorder.on_train_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch // self._length % 2 == 0:
            self._recorder.on_train_batch_end(batch, logs)
        if (batch + 1) % self._length == 0:
            self.stretches.append(time.perf_counter() - self._began)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._recorder.on_epoch_end(epoch, logs)

    def on_train_end(self, logs: Any = None) -> None:
        self._recorder.on_train_end(logs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["mlp", "lstm", "transformer"], help=", ".join(MODELS))
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--steps", type=int, default=100, help="of a stretch")
    parser.add_argument("--xla", action="store_true", help="compile the steps with XLA")
    options = parser.parse_args()
    print("| model | plain step, ms | ratio | quartiles | of all time | recorded | it says |")
    print("|---|---|---|---|---|---|---|")
    for name in options.models:
        measure(name, options.pairs, options.steps, options.xla)


def measure(name: str, pairs: int, length: int, xla: bool) -> None:
    keras.utils.set_random_seed(0)
    model, x, y = MODELS[name]()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=xla)
    data = tf.data.Dataset.from_tensors((x, y)).repeat(2 * (pairs + 1) * length)
    with tempfile.TemporaryDirectory() as directory:
        turns = InTurns(GradFlowCallback(directory), length)
        model.fit(data, verbose=0, callbacks=[turns])
        run = open_log(directory)
        cost, recorded = run.recorded.index().cost, len(run.steps)
    looked, plain = turns.stretches[2::2], turns.stretches[3::2]
    low, middle, high = statistics.quantiles([one / other for one, other in zip(looked, plain, strict=True)], n=4)
    row = (
        name,
        f"{statistics.median(plain) / length * 1e3:.1f}",
        f"{middle:.3f}",
        f"{low:.3f}-{high:.3f}",
        f"{sum(looked) / sum(plain):.3f}",
        f"{recorded} of {(pairs + 1) * length}",
        "" if cost is None else f"{cost.share:.2%}",
    )
    print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
