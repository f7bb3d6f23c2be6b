"""What a whole training costs with the recorder as it is by default, guard included.

    python -m benchmarks.whole [mlp|cnn|lstm|transformer|resnet50 …] [--seconds 60] [--turns 3]

Trainings of the same model without and with `GradFlowCallback(log_dir)` take turns. Printed is the ratio of the time
per step after the first hundred steps, in which functions are compiled and the first ten steps recorded; how many steps
were recorded of how many; what the recorder itself says that it cost, beside what the first hundred steps cost more.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

from benchmarks.models import MODELS
from benchmarks.stopwatch import Stopwatch
from tb_gradflow import GradFlowCallback, open_log

FIRST = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["mlp", "lstm", "transformer"], help=", ".join(MODELS))
    parser.add_argument("--seconds", type=float, default=60, help="of a training, about")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    print("| model | plain step, ms | ratio | of each turn | recorded | it says | first steps, s more |")
    print("|---|---|---|---|---|---|---|")
    for name in options.models:
        measure(name, options.seconds, options.turns)


def measure(name: str, seconds: float, turns: int) -> None:
    steps = FIRST + max(FIRST, int(seconds / statistics.median(train(name, FIRST)[50:])))
    ratios, more, plain_step, told, recorded = [], [], 0.0, "", 0
    for _ in range(turns):
        plain = train(name, steps)
        with tempfile.TemporaryDirectory() as directory:
            looked = train(name, steps, GradFlowCallback(directory))
            run = open_log(directory)
            cost = run.recorded.index().cost
            recorded, told = len(run.steps), "" if cost is None else f"{cost.share:.2%}"
        ratios.append(sum(looked[FIRST:]) / sum(plain[FIRST:]))
        more.append(sum(looked[:FIRST]) - sum(plain[:FIRST]))
        plain_step = statistics.median(plain)
    each = ", ".join(f"{ratio:.3f}" for ratio in ratios)
    row = (name, f"{plain_step * 1e3:.1f}", f"{statistics.median(ratios):.3f}", each, f"{recorded} of {steps}", told)
    print(f"| {' | '.join(row)} | {statistics.median(more):.1f} |", flush=True)


def train(name: str, steps: int, *callbacks: Any) -> list[float]:
    """Seconds of each step of a new model."""
    keras.utils.set_random_seed(0)
    model, x, y = MODELS[name]()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    watch = Stopwatch()
    model.fit(tf.data.Dataset.from_tensors((x, y)).repeat(steps), verbose=0, callbacks=[watch, *callbacks])
    return watch.seconds


if __name__ == "__main__":
    main()
