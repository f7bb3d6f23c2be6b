"""The cost of a whole training with the recorder at its defaults, including the non-finite monitor and the callback.

    python -m benchmarks.whole [mlp|cnn|lstm|transformer|resnet50 …] [--pairs 150] [--steps 30] [--xla] [--only WHAT]

Blocks of steps with `GradFlowCallback(log_dir)` and without it alternate within one training, because the speed of the
machine changes from one minute to the next by more than the difference to be measured. The first block, in which
functions are compiled and the first ten steps recorded, is left out. Prints the median and the quartiles of the pairs'
ratios, for the time and for the CPU time of all threads, which other programs hardly affect; the number of recorded
steps; and the cost that the recorder reports. `--only monitor` records only the first step, `--only callback` also
turns the monitor off, and `--only nothing` has no recorder at all: it shows the measurement error of the others.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

from benchmarks.models import MODELS
from tb_gradflow import GradFlowCallback, open_log

Recorder = Callable[[str], keras.callbacks.Callback]

RECORDERS: dict[str, Recorder] = {
    "all": GradFlowCallback,
    "monitor": lambda directory: GradFlowCallback(directory, update_freq=10**9),
    "callback": lambda directory: GradFlowCallback(directory, update_freq=10**9, catch_nonfinite=False),
    "nothing": lambda directory: keras.callbacks.Callback(),
}
"""The values of `--only`."""


class InTurns(keras.callbacks.Callback):
    """Lets a recorder hear of the steps of every second stretch alone.

    Attributes:
        stretches: Seconds that each took, those with the recorder first; without what lies between two of them.
        cpu: Seconds of all threads.
    """

    def __init__(self, recorder: keras.callbacks.Callback, length: int) -> None:
        super().__init__()
        self.stretches: list[float] = []
        self.cpu: list[float] = []
        self._recorder = recorder
        self._length = length
        self._began = self._cpu_began = 0.0

    def set_model(self, model: Any) -> None:
        super().set_model(model)
        self._recorder.set_model(model)

    def on_train_begin(self, logs: Any = None) -> None:
        self._recorder.on_train_begin(logs)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._recorder.on_epoch_begin(epoch, logs)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch % self._length == 0:
            self._began, self._cpu_began = time.perf_counter(), time.process_time()
        if batch // self._length % 2 == 0:
            self._recorder.on_train_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch // self._length % 2 == 0:
            self._recorder.on_train_batch_end(batch, logs)
        if (batch + 1) % self._length == 0:
            self.stretches.append(time.perf_counter() - self._began)
            self.cpu.append(time.process_time() - self._cpu_began)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._recorder.on_epoch_end(epoch, logs)

    def on_train_end(self, logs: Any = None) -> None:
        self._recorder.on_train_end(logs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["mlp", "lstm", "transformer"], help=", ".join(MODELS))
    parser.add_argument("--pairs", type=int, default=150)
    parser.add_argument("--steps", type=int, default=30, help="number of steps in a block")
    parser.add_argument("--xla", action="store_true", help="compile the steps with XLA")
    parser.add_argument("--only", choices=list(RECORDERS), default="all", help="only a part of the recorder")
    options = parser.parse_args()
    print("| model | plain step, ms | time (quartiles) | CPU time (quartiles) | recorded | it says |")
    print("|---|---|---|---|---|---|")
    for name in options.models:
        measure(name, options.pairs, options.steps, options.xla, RECORDERS[options.only])


def measure(name: str, pairs: int, length: int, xla: bool, recorder: Recorder) -> None:
    keras.utils.set_random_seed(0)
    model, x, y = MODELS[name]()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=xla)
    data = tf.data.Dataset.from_tensors((x, y)).repeat(2 * (pairs + 1) * length)
    with tempfile.TemporaryDirectory() as directory:
        turns = InTurns(recorder(directory), length)
        model.fit(data, verbose=0, callbacks=[turns])
        recorded = said = ""
        if os.path.exists(os.path.join(directory, "gradflow")):
            run = open_log(directory)
            cost = run.recorded.index().cost
            recorded = f"{len(run.steps)} of {(pairs + 1) * length}"
            said = "" if cost is None else f"{cost.share:.2%}"
    step = statistics.median(turns.stretches[3::2]) / length * 1e3
    row = (name, f"{step:.1f}", _ratio(turns.stretches), _ratio(turns.cpu), recorded, said)
    print(f"| {' | '.join(row)} |", flush=True)


def _ratio(stretches: Sequence[float]) -> str:
    pairs = zip(stretches[2::2], stretches[3::2], strict=True)
    low, middle, high = statistics.quantiles([with_it / without for with_it, without in pairs], n=4)
    return f"{middle:.3f} ({low:.3f}-{high:.3f})"


if __name__ == "__main__":
    main()
