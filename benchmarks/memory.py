"""The peak memory of recorded and guarded steps beside a plain step's, in one process.

    python -m benchmarks.memory [mlp|cnn|lstm|transformer|resnet50 …] [--steps 10]

One model is trained without a recorder, then with one that records every step, then with the guard between recorded
steps; the order matters, for an allocator keeps what it once had. Before each step the kernel is told to forget the
process's peak (`/proc/self/clear_refs`; Linux), and asked for it afterwards; medians are printed, TensorFlow itself
included, and what the resident memory has grown by over the recorded steps.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import statistics
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

from benchmarks.models import MODELS
from tb_gradflow import GradFlowCallback

WARM = 4
FIELD = re.compile(r"(Vm\w+):\s+(\d+) kB")


class Peaks(keras.callbacks.Callback):
    """Megabytes of each step: the highest, and what is left after it."""

    def __init__(self) -> None:
        super().__init__()
        self.highest: list[float] = []
        self.left: list[float] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        said = dict(FIELD.findall(Path("/proc/self/status").read_text(encoding="ascii")))
        self.highest.append(int(said["VmHWM"]) / 1024)
        self.left.append(int(said["VmRSS"]) / 1024)


def peak(model: Any, batch: Any, steps: int, **recorder: Any) -> Peaks:
    """Of the steps of one `fit` after the first ones."""
    peaks = Peaks()
    with tempfile.TemporaryDirectory() as directory:
        callbacks = [peaks, GradFlowCallback(directory, **recorder)] if recorder else [peaks]
        data = tf.data.Dataset.from_tensors(batch).repeat(steps + WARM)
        model.fit(data, verbose=0, callbacks=callbacks)
    peaks.highest, peaks.left = peaks.highest[WARM:], peaks.left[WARM:]
    return peaks


def measure(name: str, steps: int) -> None:
    keras.backend.clear_session()
    model, x, y = MODELS[name]()
    batch = (x, y)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    plain = statistics.median(peak(model, batch, steps).highest)
    every = peak(model, batch, steps, update_freq=1, catch_nonfinite=False)
    guarded = peak(model, batch, steps, update_freq=10**9)
    cells = [
        f"{plain:.0f}",
        *(f"{each:.0f} ({each / plain:.2f})" for each in map(statistics.median, (every.highest, guarded.highest))),
        f"{every.left[-1] - every.left[0]:+.1f}",
    ]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), help=", ".join(MODELS))
    parser.add_argument("--steps", type=int, default=10, help="of each kind")
    options = parser.parse_args()
    print("| model | plain, MB | recorded, MB (ratio) | guarded, MB (ratio) | stays behind, MB |")
    print("|---|---|---|---|---|")
    for name in options.models:
        measure(name, options.steps)


if __name__ == "__main__":
    main()
