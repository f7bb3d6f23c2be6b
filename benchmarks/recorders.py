"""The cost of a step with this recorder, and with TensorFlow's own ways to inspect gradients.

    python -m benchmarks.recorders [mlp|cnn|lstm|transformer|resnet50 …] [--steps 30] [--xla]

Within one training, steps with and without alternate, each pair on the same model and the same batch. Prints the median
and the quartiles of the ratios. The first steps of either kind, in which they are compiled, are left out. Each training
has a separate process, because some of these tools end it.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

from benchmarks.models import MODELS
from benchmarks.stopwatch import Stopwatch
from tb_gradflow import GradFlowCallback

WARM = 4
"""Steps of either kind that are left out."""

LIMIT = 900
"""Seconds for a training."""


class EverySecond(keras.callbacks.Callback):
    """Runs another training function in every second step."""

    def __init__(self, other: Callable[[Any], Any]) -> None:
        super().__init__()
        self._other = other

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch == 0:
            self._own = self.model.train_function
        self.model.train_function = self._own if batch % 2 else self._other


class FromTheSecondStepOn(EverySecond):
    """The same, where what the other function turns on would be traced into the model's own: that is traced first."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_begin(batch, logs)
        if batch == 0:
            self.model.train_function = self._own


class MonitoredEverySecond(GradFlowCallback):
    """Records only the first step, and monitors every second one."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_begin(batch, logs)
        if batch % 2 and batch > 0:
            self.model.train_function = self.plain


def recorded(tensors: Any) -> Callable[[Any, str], Any]:
    return lambda model, directory: GradFlowCallback(directory, update_freq=2, tensors=tensors, catch_nonfinite=False)


def monitored(model: Any, directory: str) -> Any:
    return MonitoredEverySecond(directory, update_freq=10**9)


def histograms(model: Any, directory: str) -> Any:
    """A `tf.summary.histogram` of each variable's gradient."""
    writer = tf.summary.create_file_writer(directory)

    def step(data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x=x, y=y, y_pred=model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        with writer.as_default(step=model.optimizer.iterations):
            for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
                tf.summary.histogram(variable.path, gradient)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return {"loss": loss}

    return EverySecond(model._make_function(step))


def checked(model: Any, directory: str) -> Any:
    """`tf.debugging.enable_check_numerics`, of which TensorFlow takes notice when a function is traced."""
    plain = model._make_function(model.train_step)

    def traced(iterator: Any) -> Any:
        tf.debugging.enable_check_numerics()
        try:
            return plain(iterator)
        finally:
            tf.debugging.disable_check_numerics()

    return EverySecond(traced)


def dumped(model: Any, directory: str) -> Any:
    """Debugger V2, FULL_HEALTH, which stays on from its first step: a function traced under it ends the process when it
    runs after `disable_dump_debug_info`. What it does outside of functions is in the plain steps too.
    """
    plain = model._make_function(model.train_step)
    begun: list[str] = []

    def traced(iterator: Any) -> Any:
        if not begun:
            begun.append(
                tf.debugging.experimental.enable_dump_debug_info(directory, "FULL_HEALTH", circular_buffer_size=-1)
            )
        return plain(iterator)

    return FromTheSecondStepOn(traced)


WAYS: dict[str, Callable[[Any, str], Any]] = {
    "recorded, all tensors": recorded("all"),
    "recorded, layers' outputs": recorded("layers"),
    "recorded, variables alone": recorded("variables"),
    "monitored for NaN": monitored,
    "histogram of each gradient": histograms,
    "check_numerics": checked,
    "Debugger V2, FULL_HEALTH": dumped,
}


def measure(name: str, way: Callable[[Any, str], Any], steps: int, xla: bool) -> None:
    keras.backend.clear_session()
    model, x, y = MODELS[name]()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=xla)
    count = 2 * (steps + WARM)
    data = tf.data.Dataset.from_tensors((x, y)).repeat(count)
    with tempfile.TemporaryDirectory() as directory:
        model.make_train_function()
        watch = Stopwatch()
        model.fit(data, verbose=0, callbacks=[watch, way(model, directory)])
        size = sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(directory) for f in names)
    looked, plain = watch.seconds[2 * WARM :: 2], watch.seconds[2 * WARM + 1 :: 2]
    ratios = [one / other for one, other in zip(looked, plain, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"| {name} | {way_name(way)} | {middle:.3f} | {low:.3f}-{high:.3f} | {np.median(plain) * 1e3:.1f} | "
        f"{size / (steps + WARM) / 1024:.1f} |",
        flush=True,
    )


def way_name(way: Callable[[Any, str], Any]) -> str:
    return next(name for name, each in WAYS.items() if each is way)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), help=", ".join(MODELS))
    parser.add_argument("--steps", type=int, default=30, help="pairs of steps")
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    parser.add_argument("--xla", action="store_true", help="compile the steps with XLA")
    options = parser.parse_args()
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, TensorFlow {tf.__version__}, ", end=""
    )
    print(f"Keras {keras.__version__}, {options.steps} pairs\n")
    print("| model | with | ratio | quartiles | plain step, ms | KB a step |")
    print("|---|---|---|---|---|---|")
    for name in options.models:
        for way in options.ways:
            apart(name, way, options.steps, options.xla)


def apart(name: str, way: str, steps: int, xla: bool) -> None:
    """Measures in a process of its own."""
    code = f"from benchmarks.recorders import WAYS, measure; measure({name!r}, WAYS[{way!r}], {steps}, {xla})"
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        print(f"| {name} | {way} | did not end in {LIMIT} s | | | |", flush=True)
        return
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    print(*(rows or [f"| {name} | {way} | the process ended with {done.returncode} | | | |"]), sep="\n", flush=True)


if __name__ == "__main__":
    main()
