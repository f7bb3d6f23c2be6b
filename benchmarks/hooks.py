"""The cost of the hooks of `tb-gradflow run`, `%%gradflow` and the pytest fixture for a training.

    python -m benchmarks.hooks [eager loop|tf.function|fit …] [--pairs 40] [--steps 50]

One training alternates between blocks of steps: with TensorFlow's and Keras's own functions; with the hooks in place
but no recording, as between two cells or tests; and with everything recorded, with the default options. Prints the
medians and quartiles of the ratios to the preceding block without hooks, for the time and for the CPU time of all
threads, which other programs hardly affect. The first blocks, in which functions are compiled and the first steps
recorded, are left out. `nothing` has no hooks at all: it shows the measurement error of the others.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from benchmarks.models import MODELS
from tb_gradflow.trace.program import hooks
from tb_gradflow.trace.program.recording import Recording

WARM = 2
"""Rounds that are left out."""

HOOKED = (
    (tf.GradientTape, ("__enter__", "__exit__", "gradient", "jacobian", "batch_jacobian")),
    (polymorphic_function.Function, ("__call__", "__getstate__")),
    (
        next(each for each in keras.Model.__mro__ if "fit" in vars(each)),
        ("fit", "train_on_batch", "make_train_function", "evaluate", "predict", "test_on_batch", "predict_on_batch"),
    ),
)

Functions = list[tuple[Any, str, Any]]
Training = Callable[[int], None]
"""Trains for so many steps."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainings", nargs="*", default=list(TRAININGS), help=", ".join(TRAININGS))
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--steps", type=int, default=50, help="number of steps in a block")
    options = parser.parse_args()
    plain = list(functions())
    hooks.start(Recording("/nowhere", {}))
    hooks.stop()
    hooked = list(functions())
    assert all(one[2] is not other[2] for one, other in zip(plain, hooked, strict=True))
    print("| training | a step, ms | with | time (quartiles) | CPU time (quartiles) |")
    print("|---|---|---|---|---|")
    for name in options.trainings:
        measure(name, TRAININGS[name](), plain, hooked, options)


def functions() -> Iterator[tuple[Any, str, Any]]:
    for owner, names in HOOKED:
        yield from ((owner, name, vars(owner)[name]) for name in names if name in vars(owner))


def measure(name: str, train: Training, plain: Functions, hooked: Functions, options: argparse.Namespace) -> None:
    taken: dict[str, list[tuple[float, float]]] = {"nothing": [], "hooks": [], "recording": []}
    steps = []
    with tempfile.TemporaryDirectory() as directory:
        recording = Recording(directory, {})
        for _ in range(WARM + options.pairs):
            for kind in taken:
                put(plain)
                without = seconds_of(train, options.steps)
                steps.append(without[0] / options.steps)
                put(plain if kind == "nothing" else hooked)
                if kind == "recording":
                    hooks.start(recording)
                with_it = seconds_of(train, options.steps)
                hooks.stop()
                taken[kind].append((with_it[0] / without[0], with_it[1] / without[1]))
        runs = [place.name for place in recording.runs]
        assert runs, "nothing was recorded"
    step = f"{1000 * statistics.median(steps):.1f}"
    for kind, ratios in taken.items():
        times, cpu = zip(*ratios[WARM:], strict=True)
        print(f"| {name} | {step} | {kind} | {quartiles(times)} | {quartiles(cpu)} |", flush=True)


def put(kept: Functions) -> None:
    for owner, name, function in kept:
        setattr(owner, name, function)


def seconds_of(train: Training, steps: int) -> tuple[float, float]:
    began, cpu = time.perf_counter(), time.process_time()
    train(steps)
    return time.perf_counter() - began, time.process_time() - cpu


def quartiles(ratios: Iterable[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.3f} ({low:.3f}-{high:.3f})"


def _model() -> Any:
    model, x, y = MODELS["mlp"]()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.optimizer.build(model.trainable_variables)
    return model, tf.constant(x), tf.constant(y)


def _step(model: Any, x: Any, y: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x=x, y=y, y_pred=model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


def eager_loop() -> Training:
    model, x, y = _model()

    def train(steps: int) -> None:
        for _ in range(steps):
            _step(model, x, y)

    return train


def compiled() -> Training:
    model, x, y = _model()

    @tf.function
    def train_step() -> Any:
        return _step(model, x, y)

    def train(steps: int) -> None:
        for _ in range(steps):
            train_step()

    return train


def fit() -> Training:
    model, x, y = _model()
    batch = tf.data.Dataset.from_tensors((x, y))

    def train(steps: int) -> None:
        model.fit(batch.repeat(steps), verbose=0)

    return train


TRAININGS: dict[str, Callable[[], Training]] = {"eager loop": eager_loop, "tf.function": compiled, "fit": fit}


if __name__ == "__main__":
    main()
