"""The peak memory of recorded and monitored steps, compared with plain ones; each training in a separate process.

    python -m benchmarks.memory [mlp|cnn|lstm|transformer|resnet50 …] [--steps 10]

A model is trained without a recorder; with one that records every step; and with one that records the first step and
monitors the others, as it does with most steps of a training. Before each step the peak of the process is reset
(`/proc/self/clear_refs`; Linux), and after it the peak is read. Prints medians, including TensorFlow itself, and the
growth of the resident memory over the recorded steps and over the same number of plain ones.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import statistics
import subprocess
import sys
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


RECORDERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "recorded": {"update_freq": 1, "catch_nonfinite": False},
    "monitored": {"update_freq": 10**9},
}


def peaks(name: str, steps: int, recorder: dict[str, Any]) -> None:
    """Prints the median peak of the steps after the first ones, and the memory that remains. Needs its own process."""
    model, x, y = MODELS[name]()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    seen = Peaks()
    with tempfile.TemporaryDirectory() as directory:
        callbacks = [seen, GradFlowCallback(directory, **recorder)] if recorder else [seen]
        model.fit(tf.data.Dataset.from_tensors((x, y)).repeat(steps + WARM), verbose=0, callbacks=callbacks)
    print(statistics.median(seen.highest[WARM:]), seen.left[-1] - seen.left[WARM])


def measure(name: str, steps: int) -> None:
    found = {}
    for way in RECORDERS:
        code = f"from benchmarks.memory import RECORDERS, peaks; peaks({name!r}, {steps}, RECORDERS[{way!r}])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        found[way] = [float(each) for each in done.stdout.split()[-2:]]
    plain = found["plain"][0]
    peak = {way: f"{highest:.0f} ({highest / plain:.2f})" for way, (highest, _) in found.items()}
    left = f"{found['recorded'][1]:+.1f} ({found['plain'][1]:+.1f})"
    print(f"| {name} | {plain:.0f} | {peak['recorded']} | {peak['monitored']} | {left} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), help=", ".join(MODELS))
    parser.add_argument("--steps", type=int, default=10, help="number of steps of each kind")
    options = parser.parse_args()
    print("| model | plain, MB | recorded, MB (ratio) | monitored, MB (ratio) | remains, MB (plain) |")
    print("|---|---|---|---|---|")
    for name in options.models:
        measure(name, options.steps)


if __name__ == "__main__":
    main()
