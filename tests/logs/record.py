"""Records the sample log of today's format: run once for each format, before its release, and never again.

    python tests/logs/record.py

A small model whose step filter never learns, and whose head does. The source file is named `model.py` wherever
this runs, so that a sample holds no path of anybody's machine.
"""

from __future__ import annotations

import linecache
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

import tb_gradflow
from tb_gradflow.record.schema import FORMAT

HERE = Path(__file__).parent

MODEL = '''\
import keras
import tensorflow as tf


class StepFilter(keras.layers.Layer):
    """Lets the first steps of a sequence through; how many is to be learned."""

    def build(self, shape):
        self.threshold = self.add_weight(name="threshold", shape=(), initializer=keras.initializers.Constant(4.0))

    def call(self, x):
        mask = tf.sequence_mask(self.threshold, 8, dtype=tf.float32)
        return x * mask


model = keras.Sequential(
    [keras.layers.Dense(8, name="dense"), StepFilter(name="step_filter"), keras.layers.Dense(1, name="head")]
)
'''


def main() -> None:
    destination = HERE / f"v{FORMAT}" / "gradflow"
    if destination.exists():
        raise SystemExit(f"{destination} exists, and a sample is never edited: add one to FORMAT first")
    keras.utils.set_random_seed(0)
    linecache.cache["model.py"] = (len(MODEL), None, MODEL.splitlines(keepends=True), "model.py")
    names: dict[str, Any] = {}
    exec(compile(MODEL, "model.py", "exec"), names)
    model = names["model"]
    model.compile("adam", "mse")
    inputs = np.random.default_rng(0).random((90, 8)).astype("float32")
    with tempfile.TemporaryDirectory() as log_dir:
        recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1)
        # Ninety in batches of 32: the last batch is smaller, and makes a trace of its own.
        model.fit(inputs, inputs.sum(1, keepdims=True), batch_size=32, epochs=12, verbose=0, callbacks=[recorder])
        [written] = (Path(log_dir) / "gradflow").iterdir()
        destination.mkdir(parents=True)
        # Without the name of the machine.
        (destination / "events.out.tfevents.1700000000.000000000.sample.1.gradflow").write_bytes(written.read_bytes())


if __name__ == "__main__":
    main()
