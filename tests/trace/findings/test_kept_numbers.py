"""Python numbers that a compiled step keeps from when it was compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import tb_gradflow
from tb_gradflow.record.report import Finding

X = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
Y = X.sum(1, keepdims=True)

TEMPERATURE = 4.0
ROUNDS = 0


class Weighted(keras.Model):
    """A model whose step depends on Python numbers in the way that `use` names."""

    def __init__(self, use: str) -> None:
        super().__init__()
        self.hidden = layers.Dense(4, activation="tanh")
        self.last = layers.Dense(1)
        self.use = use
        self.strength, self.steps, self.width, self.epoch, self.penalises = 0.0, 0, 4, 0, False
        self.rounds = self.turns = 0
        self.seen = keras.metrics.Mean(name="seen")

    def call(self, x: Any) -> Any:
        if self.use == "counts traces":
            self.steps += 1
        return self.last(tf.reshape(self.hidden(x), (-1, self.width)))

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
            if self.use == "attribute":
                loss += self.strength * tf.reduce_sum(tf.square(self.last.kernel))
            if self.use == "counter":
                weight = min(1.0, self.steps / 10)
                self.steps += 1
                loss += weight * tf.reduce_sum(tf.square(self.last.kernel))
            if self.use == "set anew":
                loss *= self.counted()
            if self.use == "set anew elsewhere":
                loss = self.twice(loss)
            if self.use == "set anew under the tape":
                loss *= self.scale(x)
            if self.use == "read live":
                loss += tf.ensure_shape(tf.py_function(lambda: self.strength, [], tf.float32), ())
            if self.use == "read live by name":

                def strength() -> float:
                    return self.strength

                loss += tf.ensure_shape(tf.py_function(strength, [], tf.float32), ())
            if self.use == "condition":
                if self.penalises:
                    loss += tf.reduce_sum(tf.square(self.last.kernel))
                loss *= 1.0
        if self.use == "logged":
            logs = {"epoch": 0}
            if self.epoch >= 0:
                logs.update(epoch=self.epoch)
                self.seen.update_state(loss)
        if self.use == "only printed":
            tf.print("epoch", self.epoch, loss, output_stream="file:///dev/null")
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}

    def begin(self) -> None:
        self.rounds = 0

    def twice(self, loss: Any) -> Any:
        self.turns = 0
        self.begin()
        return self.weighted(self.weighted(loss))

    def weighted(self, loss: Any) -> Any:
        self.rounds += 1
        self.turns += 1
        return loss * (1.0 / self.rounds) * (1.0 / self.turns)

    def scale(self, x: Any) -> Any:
        with tf.name_scope("scale"):
            self.rounds = 0
            for _ in range(3):
                self.rounds += 1
            return tf.reduce_mean(x) ** 2 * self.rounds

    def counted(self) -> Any:
        self.rounds = 0
        total = tf.constant(1.0)
        for _ in range(3):
            self.rounds += 1
            total += tf.constant(0.1) * self.rounds
        return total


class Changes(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.model.strength, self.model.epoch, self.model.penalises = 0.25 * epoch, epoch, epoch > 0


def findings_of_fit(directory: Path, use: str, *, run_eagerly: bool = False) -> list[Finding]:
    keras.utils.set_random_seed(1)
    model = Weighted(use)
    model.compile(optimizer="adam", run_eagerly=run_eagerly)
    callbacks = [Changes(), tb_gradflow.GradFlowCallback(directory)]
    model.fit(X, Y, batch_size=16, epochs=4, verbose=0, callbacks=callbacks)
    return loud(tb_gradflow.open_log(directory).report())


def loud(report: tb_gradflow.Report) -> list[Finding]:
    return [each for each in report.findings if each.severity != "info"]


@pytest.mark.parametrize(
    ("use", "name", "told"),
    [
        ("attribute", "self.strength", "was 0 when the step was compiled"),
        ("counter", "self.steps", "which it also updates"),
        ("condition", "self.penalises", "was 0 when the step was compiled"),
    ],
)
def test_a_number_that_changes_beside_the_compiled_step_is_told(use: str, name: str, told: str, tmp_path: Path) -> None:
    [finding] = findings_of_fit(tmp_path, use)
    assert finding.cause == "python_constant"
    assert finding.source is not None
    assert name in finding.source.code
    assert name in finding.message
    assert told in finding.message
    assert "It started" not in finding.message


@pytest.mark.parametrize(
    "use",
    [
        *("counts traces", "only printed", "logged", "read live", "read live by name"),
        *("set anew", "set anew elsewhere", "set anew under the tape", "none"),
    ],
)
def test_numbers_that_the_loss_does_not_depend_on_are_left_alone(use: str, tmp_path: Path) -> None:
    assert findings_of_fit(tmp_path, use) == []


class Lagging(keras.Model):
    """Learns towards a copy of itself, which is to be updated in every fifth step."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.target, self.steps = layers.Dense(1), layers.Dense(1), 0

    def call(self, x: Any) -> Any:
        return self.last(x), self.target(x)

    def train_step(self, data: Any) -> Any:
        x, y = data
        self.steps += 1
        with tf.GradientTape() as tape:
            own, other = self(x, training=True)
            loss = tf.reduce_mean(tf.square(y + 0.9 * tf.stop_gradient(other) - own))
        variables = self.last.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        if self.steps % 5 == 0:
            self.target.set_weights(self.last.get_weights())
        return {"loss": loss}


def test_an_update_that_python_decides_once_is_told(tmp_path: Path) -> None:
    keras.utils.set_random_seed(4)
    model = Lagging()
    model.compile(optimizer="adam")
    model.fit(X, Y, batch_size=16, epochs=4, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])
    [finding] = loud(tb_gradflow.open_log(tmp_path).report())
    assert finding.cause == "python_constant"
    assert finding.source is not None
    assert finding.source.code == "if self.steps % 5 == 0:"
    assert "The step decides with `self.steps`" in finding.message


def test_an_eager_step_reads_them_anew(tmp_path: Path) -> None:
    assert findings_of_fit(tmp_path, "attribute", run_eagerly=True) == []


def test_a_number_of_the_module_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keras.utils.set_random_seed(2)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(4)])
    optimizer = keras.optimizers.Adam(1e-2)

    @tb_gradflow.watch(tmp_path)
    def step(x: Any) -> Any:
        return of_module(model, optimizer, x)

    for number in range(6):
        monkeypatch.setitem(globals(), "TEMPERATURE", 4.0 - number / 2)
        monkeypatch.setitem(globals(), "ROUNDS", number)
        step(tf.constant(X))
    step.flush()
    [finding] = loud(tb_gradflow.open_log(tmp_path).report())
    assert finding.cause == "python_constant"
    assert "`TEMPERATURE`" in finding.message
    assert "was 4 " in finding.message


def of_module(model: Any, optimizer: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        loss = -tf.reduce_mean(tf.reduce_max(tf.nn.softmax(model(x) / TEMPERATURE), axis=1))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    tf.print(ROUNDS, output_stream="file:///dev/null")
    return loss


def test_explain_tells_a_counter() -> None:
    keras.utils.set_random_seed(3)
    model = Weighted("counter")
    model.compile(optimizer="adam")
    model(X[:2])
    [finding] = loud(tb_gradflow.explain(model, X, Y))
    assert finding.cause == "python_constant"
    model.compile(optimizer="adam", run_eagerly=True)
    assert loud(tb_gradflow.explain(model, X, Y)) == []


class Scaled(layers.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.rate = layers.Dense(1), 0.5

    def call(self, x: Any) -> Any:
        return self.dense(x) * self.rate


@pytest.mark.parametrize("is_used", [True, False])
def test_of_several_objects_that_is_told_whose_variables_the_step_reads(is_used: bool, tmp_path: Path) -> None:
    keras.utils.set_random_seed(5)
    used, other = Scaled(), Scaled()
    other(X)
    changed = used if is_used else other

    class Both(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            changed.rate = 0.5 - 0.1 * epoch

    model = keras.Sequential([keras.Input((4,)), used])
    model.compile("adam", "mse")
    callbacks = [Both(), tb_gradflow.GradFlowCallback(tmp_path)]
    model.fit(X, Y, batch_size=16, epochs=4, verbose=0, callbacks=callbacks)
    causes = [each.cause for each in loud(tb_gradflow.open_log(tmp_path).report())]
    assert causes == ["python_constant"] * is_used


class Centred:
    """Holds nothing that a step captures."""

    def __init__(self) -> None:
        self.mean = 0.0

    def __call__(self, x: Any) -> Any:
        return x - self.mean


def test_which_of_several_objects_is_read_is_not_guessed(tmp_path: Path) -> None:
    keras.utils.set_random_seed(7)
    of_step, of_loop = Centred(), Centred()
    model, optimizer = keras.Sequential([keras.Input((4,)), layers.Dense(1)]), keras.optimizers.Adam(1e-2)

    @tb_gradflow.watch(tmp_path)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(of_step(x)) - Y))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    for _ in range(6):
        of_loop.mean += float(step(tf.constant(X)))
    step.flush()
    assert loud(tb_gradflow.open_log(tmp_path).report()) == []


def test_what_the_loop_around_a_step_counts_is_not_of_the_step(tmp_path: Path) -> None:
    keras.utils.set_random_seed(6)
    train_in_a_loop(tmp_path)
    assert loud(tb_gradflow.open_log(tmp_path).report()) == []


def train_in_a_loop(directory: Path) -> None:
    global ROUNDS
    model, optimizer = keras.Sequential([keras.Input((4,)), layers.Dense(1)]), keras.optimizers.Adam(1e-2)
    loss = tf.constant(0.0)

    @tb_gradflow.watch(directory)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - Y))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    for _ in range(6):
        ROUNDS += 1
        if ROUNDS % 2:
            loss = step(tf.constant(X))
    assert np.isfinite(loss)
    step.flush()
