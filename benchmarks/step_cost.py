"""What a recorded step costs over a plain one, and whether the plain ones stay what they were.

    python -m benchmarks.step_cost [mlp|cnn|lstm|transformer|resnet50] [--steps 12] [--tensors all|layers|variables]

Plain and recorded steps alternate within one process on the same model; medians and their ratio are printed. The
log's size per recorded step comes from the same run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from benchmarks.models import MODELS
from benchmarks.stopwatch import Stopwatch
from tb_gradflow import GradFlowCallback


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=MODELS, nargs="?", default="resnet50")
    parser.add_argument("--steps", type=int, default=12, help="recorded steps, and as many plain ones")
    parser.add_argument("--tensors", default="all")
    options = parser.parse_args()
    model, x, y = MODELS[options.model]()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    with tempfile.TemporaryDirectory() as directory:
        watch = Stopwatch()
        callback = GradFlowCallback(directory, update_freq=2, tensors=options.tensors, catch_nonfinite=False)
        # The stopwatch stands last, so that the recorder's own callbacks are inside what it measures on both sides.
        data = np.concatenate([x] * (2 * options.steps)).astype(x.dtype), np.concatenate([y] * (2 * options.steps))
        model.fit(*data, batch_size=len(x), verbose=0, shuffle=False, callbacks=[watch, callback])
        size = sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(directory) for f in names)
    recorded, plain = watch.seconds[2::2], watch.seconds[3::2]
    ratios = [a / b for a, b in zip(recorded, plain, strict=True)]
    print(
        f"first recorded step {watch.seconds[0]:.2f} s, first plain step {watch.seconds[1]:.2f} s (both with tracing)"
    )
    print(f"recorded {statistics.median(recorded) * 1e3:.1f} ms, plain {statistics.median(plain) * 1e3:.1f} ms")
    print(f"ratio {statistics.median(ratios):.3f} (median of {len(ratios)} pairs)")
    print(f"log {size / len(watch.seconds[::2]) / 1024:.1f} KB a recorded step, structure included")


if __name__ == "__main__":
    main()
