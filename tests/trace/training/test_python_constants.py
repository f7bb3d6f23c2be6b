"""Numbers of Python that a step is compiled with are those of its first trace, with the recorder as without it."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.trace.fidelity.python_constants import TracedNumbers
from tb_gradflow.trace.fidelity.quiet_prints import without_prints

X = np.random.default_rng(0).normal(size=(96, 4)).astype("float32")

WAYS: list[dict[str, Any]] = [{}, {"catch_nonfinite": False}, {"update_freq": 1}, {"update_freq": 7}]

ALL_OBSERVED = [ways for ways in WAYS if "catch_nonfinite" not in ways]
"""Those in which all steps are recorded or monitored."""


def fitted(kind: str, *callbacks: Any) -> Any:
    """A weight of the loss is raised after each batch; Keras goes on with the one that it has compiled."""
    kit: Any = tf_keras if "Keras 2" in kind else keras
    kit.utils.set_random_seed(5)

    class Penalised(kit.Model):
        def train_step(self, data: Any) -> Any:
            x, y = data
            self.traces += 1
            with tf.GradientTape() as tape:
                out = self(x)
                error = tf.reduce_mean(tf.square(out - y)) + self.beta * tf.reduce_mean(tf.square(out))
            gradients = tape.gradient(error, self.trainable_variables)
            scaled = [gradient / self.traces for gradient in gradients]
            self.optimizer.apply_gradients(zip(scaled, self.trainable_variables, strict=True))
            return {"loss": error}

    class Raised(kit.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.model.beta += 0.1

    inputs = kit.Input((4,))
    model = Penalised(inputs, kit.layers.Dense(1)(inputs))
    model.beta, model.traces = 0.0, 0
    model.compile("adam", jit_compile="XLA" in kind, steps_per_execution=3 if "several" in kind else 1)
    losses: list[float] = []
    # The second fit is without the recorder, and goes on with what Keras has compiled in the first, or would have.
    for beside in (callbacks, ()):
        history = model.fit(
            X, X[:, :1], batch_size=8, epochs=2, shuffle=False, verbose=0, callbacks=[*beside, Raised()]
        )
        losses += history.history["loss"]
    return losses, [weight.tolist() for weight in model.get_weights()], model.beta, model.traces


@pytest.mark.parametrize("kind", ["", "XLA", "several steps an execution", "Keras 2", "Keras 2, several"])
def test_a_fit_trains_with_the_numbers_of_its_first_trace(kind: str, tmp_path: Path) -> None:
    plain = fitted(kind)

    for number, ways in enumerate(WAYS):
        assert fitted(kind, GradFlowCallback(tmp_path / str(number), **ways)) == plain


total = 0


class Optimizer:
    """As tutorials write it: counts its steps in Python."""

    steps = 1

    def apply(self, gradient: Any, weight: Any) -> None:
        weight.assign_sub(0.1 / (1 - 0.9**self.steps) * gradient)
        self.steps += 1


def looped(compiled: Callable[[Callable[..., Any]], Any]) -> Any:
    global total
    total = 0
    optimizer, weight, settings = Optimizer(), tf.Variable([1.0, 2.0]), {"beta": 0.0}
    shifts: list[tf.Variable] = []
    beta = tf.constant(0.0)

    @compiled
    def step(x: Any) -> Any:
        global total
        total += 1
        if not shifts:  # then TensorFlow traces the step a second time
            shifts.append(tf.Variable(0.5))
        with tf.GradientTape() as tape:
            penalty = settings["beta"] * tf.reduce_sum(weight**2) * total + beta * weight[0]
            error = tf.reduce_sum((weight * x - 1.0) ** 2) + penalty + shifts[0]
        optimizer.apply(tape.gradient(error, weight), weight)
        return error

    losses = []
    for number in range(24):
        losses.append(float(step(tf.constant(0.3))))
        settings["beta"] += 0.01
        beta = tf.constant(0.1 * number)
    return losses, optimizer.steps, total, settings


def test_a_watched_step_runs_with_the_numbers_of_its_first_trace(tmp_path: Path) -> None:
    plain = looped(tf.function)

    for number, ways in enumerate(WAYS):
        assert looped(tb_gradflow.watch(tmp_path / str(number), **ways)) == plain


def test_a_watched_step_is_traced_for_another_shape_with_the_numbers_of_then(tmp_path: Path) -> None:
    def run(compiled: Callable[[Callable[..., Any]], Any]) -> list[float]:
        weight, settings = tf.Variable(1.0), {"beta": 0.0}

        @compiled
        def step(x: Any) -> Any:
            with tf.GradientTape() as tape:
                error = tf.reduce_mean((weight * x - 1.0) ** 2) + settings["beta"] * weight**2
            weight.assign_sub(0.1 * tape.gradient(error, weight))
            return error

        losses = []
        for number in range(12):
            losses.append(float(step(tf.fill([3 if number % 4 == 3 else 8], 0.3))))
            settings["beta"] += 0.1
        return losses

    assert run(tb_gradflow.watch(tmp_path, update_freq=100)) == run(tf.function)


def refitted(*recorders: list[Any]) -> Any:
    """Three fits without `compile` in between. Keras has compiled a step with other numbers for the last one's batches,
    which have sample weights."""
    keras.utils.set_random_seed(5)

    class Penalised(keras.Model):
        def train_step(self, data: Any) -> Any:
            x, y, weight = (*data, 1.0)[:3]
            self.traces += 1
            with tf.GradientTape() as tape:
                out = self(x)
                error = tf.reduce_mean(weight * tf.square(out - y)) + self.beta * tf.reduce_mean(tf.square(out))
            self.optimizer.apply_gradients(
                zip(tape.gradient(error, self.trainable_variables), self.trainable_variables, strict=True)
            )
            return {"error": error}

    inputs = keras.Input((4,))
    model = Penalised(inputs, keras.layers.Dense(1)(inputs))
    model.beta, model.traces = 0.0, 0
    model.compile("adam")
    losses: list[float] = []
    weights = [None, None, np.linspace(0.0, 1.0, len(X))]
    for number, callbacks in enumerate(recorders):
        history = model.fit(
            X, X[:, :1], sample_weight=weights[number], batch_size=8, shuffle=False, verbose=0, callbacks=callbacks
        )
        losses += history.history["error"]
        model.beta += 0.5
    return losses, [weight.tolist() for weight in model.get_weights()], model.traces


@pytest.mark.parametrize("ways", ALL_OBSERVED)
def test_each_fit_trains_with_the_numbers_for_its_batches(ways: dict[str, Any], tmp_path: Path) -> None:
    plain = refitted([], [], [])
    one, first, second, third = (GradFlowCallback(tmp_path / name, **ways) for name in "abcd")

    assert refitted([one], [one], [one]) == plain
    assert refitted([first], [second], [third]) == plain
    assert refitted([GradFlowCallback(tmp_path / "e", **ways)], [], []) == plain


@pytest.mark.parametrize("ways", ALL_OBSERVED)
def test_a_watched_step_keeps_the_numbers_of_each_shape(ways: dict[str, Any], tmp_path: Path) -> None:
    def run(compiled: Callable[[Callable[..., Any]], Any]) -> Any:
        weight, settings = tf.Variable(1.0), {"beta": 0.0, "calls": 0}

        @compiled
        def step(x: Any, is_first: bool) -> Any:
            settings["calls"] += 1
            with tf.GradientTape() as tape:
                error = tf.reduce_mean((weight * x - 1.0) ** 2) + settings["beta"] * weight**2
            weight.assign_sub((0.1 if is_first else 0.2) * tape.gradient(error, weight))
            return error

        losses = []
        for number in range(40):
            losses.append(float(step(tf.fill([3 if number % 5 == 4 else 8], 0.3), number % 2 == 0)))
            settings["beta"] += 0.1
        return losses, settings["calls"]

    assert run(tb_gradflow.watch(tmp_path, **ways)) == run(tf.function)


class Annealed:
    """A training step as a method, with numbers that change after each step."""

    def __init__(self) -> None:
        self.weight, self.beta, self.calls = tf.Variable(1.0), 0.0, 0

    def advance(self, x: Any, scale: float) -> Any:
        self.calls += 1
        with tf.GradientTape() as tape:
            error = (self.weight * x - 1.0) ** 2 * scale + self.beta * self.weight**2
        self.weight.assign_sub(0.1 * tape.gradient(error, self.weight))
        return error

    @tf.function
    def step(self, x: Any) -> Any:
        return self.advance(x, 1.0)


STEPS: list[Callable[[Annealed], Any]] = [
    lambda each: each.step,
    lambda each: tf.function(functools.partial(each.advance, scale=0.5)),
]


@pytest.mark.parametrize("step_of", STEPS)
def test_a_method_runs_with_the_numbers_of_its_first_trace(step_of: Callable[[Annealed], Any], tmp_path: Path) -> None:
    def run(watched: Callable[[Any], Any]) -> Any:
        objects = [Annealed(), Annealed()]
        steps = [watched(step_of(each)) for each in objects]
        losses = []
        for _ in range(24):
            losses.append([float(step(tf.constant(0.3))) for step in steps])
            for number, each in enumerate(objects):
                each.beta += 0.1 * (number + 1)
        return losses, [each.calls for each in objects]

    assert run(tb_gradflow.watch(tmp_path)) == run(lambda step: step)


def printed(*values: Any) -> None:
    """What `print` does."""
    sys.stdout.write(f"{values}\n")


@pytest.mark.parametrize("ways", ALL_OBSERVED)
def test_a_step_prints_what_it_prints_while_it_is_traced(
    ways: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def run(compiled: Callable[[Callable[..., Any]], Any]) -> str:
        weight = tf.Variable(1.0)

        @compiled
        def step(x: Any) -> Any:
            printed("tracing", x.shape)
            tf.print("running", x)
            with tf.GradientTape() as tape:
                error = tf.reduce_mean((weight * x - 1.0) ** 2)
            weight.assign_sub(0.1 * tape.gradient(error, weight))
            return error

        stream = sys.stdout
        for number in range(16):
            printed(step(tf.fill([3 if number % 5 == 4 else 8], 0.3)).dtype)
        assert sys.stdout is stream
        return capfd.readouterr().out

    assert run(tb_gradflow.watch(tmp_path, **ways)) == run(tf.function)


def test_a_fit_prints_what_its_step_prints_while_it_is_traced(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    class Speaking(keras.Model):
        def train_step(self, data: Any) -> Any:
            printed("tracing", data[0].shape)
            return super().train_step(data)

    def run(*callbacks: Any) -> str:
        inputs = keras.Input((4,))
        model = Speaking(inputs, keras.layers.Dense(1)(inputs))
        model.compile("adam", "mse")
        for beside in (callbacks, ()):
            model.fit(X, X[:, :1], batch_size=4, verbose=0, callbacks=beside)
        return capfd.readouterr().out

    assert run(GradFlowCallback(tmp_path)) == run()


def test_other_threads_print_while_a_step_is_traced_once_more(capsys: pytest.CaptureFixture[str]) -> None:
    stream = sys.stdout

    with without_prints():
        printed("hidden")
        other = threading.Thread(target=printed, args=("shown",))
        other.start()
        other.join()
        sys.stdout.writelines(["hidden"])

    assert sys.stdout is stream
    assert capsys.readouterr().out == "('shown',)\n"


def test_what_cannot_be_looked_at_is_left_alone() -> None:
    class Strange:
        @property
        def number(self) -> float:
            raise RuntimeError("nobody asks for this")

    class Refusing(dict[str, Any]):
        def __setitem__(self, key: str, value: Any) -> None:
            raise RuntimeError("read only")

    settings, strange, many = Refusing(beta=1.0), Strange(), [0.5] * 100_000
    here = {"beta": 1.0, "gone": 2.0}

    def step() -> Any:
        return settings["beta"], here["beta"], strange, len(many)

    numbers = TracedNumbers(step)
    numbers.shared(step)()
    dict.update(settings, beta=3.0)
    here["beta"] = 4.0
    del here["gone"]

    assert numbers.following(step)()[:2] == (3.0, 1.0)
    assert here == {"beta": 4.0}
