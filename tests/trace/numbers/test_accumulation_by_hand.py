"""Gradients that somebody adds up by hand, in every form in which people write that: a weight that stands still waits
for its turn where that was seen, against the weights themselves, and nobody else is said to."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.serve.reports.report import Report

N = 3
X = tf.constant(np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32))
Y = tf.constant(np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32))


class Training:
    """A weight, an optimizer, and what is counted and summed; each method is a training step."""

    def __init__(self) -> None:
        self.weight = tf.Variable(np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2), name="weight")
        self.other = tf.Variable([0.5, -0.5], name="other")
        self.weights = [self.weight, self.other]
        self.sums = [tf.Variable(tf.zeros_like(each), trainable=False) for each in self.weights]
        self.count = tf.Variable(0, trainable=False)
        self.optimizer = keras.optimizers.Adam(0.01)
        self.optimizer.build(self.weights)

    def gradients(self) -> Sequence[Any]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((X @ self.weight + self.other - Y) ** 2)
        found: Sequence[Any] = tape.gradient(loss, self.weights)
        return found

    def apply(self) -> None:
        self.optimizer.apply_gradients(zip(self.sums, self.weights, strict=True))
        for each in self.sums:
            each.assign(tf.zeros_like(each))

    def if_statement(self) -> None:
        for each, gradient in zip(self.sums, self.gradients(), strict=True):
            each.assign_add(gradient / N)
        self.count.assign_add(1)
        if self.count % N == 0:
            self.optimizer.apply_gradients(zip(self.sums, self.weights, strict=True))
            for each in self.sums:
                each.assign(tf.zeros_like(each))

    def cond(self) -> None:
        for each, gradient in zip(self.sums, self.gradients(), strict=True):
            each.assign(each + gradient)
        self.count.assign_add(1)
        tf.cond(tf.equal(self.count % N, 0), lambda: self.apply(), lambda: None)

    def clipped(self) -> None:
        gradients, _ = tf.clip_by_global_norm(self.gradients(), 0.1)
        self.count.assign_add(1)
        for each, gradient in zip(self.sums, gradients, strict=True):
            each.assign_add(gradient)
        if self.count % N == 0:
            self.apply()

    def summed_in_a_function(self) -> None:
        self.summed(self.gradients())
        self.count.assign_add(1)
        if self.count % N == 0:
            self.apply()

    @tf.function
    def summed(self, gradients: Sequence[Any]) -> None:
        for each, gradient in zip(self.sums, gradients, strict=True):
            each.assign_add(gradient)

    def own_descent(self) -> None:
        for each, gradient in zip(self.sums, self.gradients(), strict=True):
            each.assign_add(gradient)
        self.count.assign_add(1)
        if self.count % N == 0:
            for each, total in zip(self.weights, self.sums, strict=True):
                each.assign_sub(0.1 * total)
                total.assign(tf.zeros_like(total))

    def now_and_then(self) -> None:
        """Gradients between are dropped, as a generator's that learns in every third step."""
        gradients = self.gradients()
        self.count.assign_add(1)
        if self.count % N == 0:
            self.optimizer.apply_gradients(zip(gradients, self.weights, strict=True))

    # Those in which nothing waits.
    def every_step(self) -> None:
        self.optimizer.apply_gradients(zip(self.gradients(), self.weights, strict=True))

    def own_momentum(self) -> None:
        for each, kept, gradient in zip(self.weights, self.sums, self.gradients(), strict=True):
            kept.assign(0.9 * kept + gradient)
            each.assign_sub(0.1 * kept)

    def mean_for_the_log(self) -> None:
        gradients = self.gradients()
        for each, gradient in zip(self.sums, gradients, strict=True):
            each.assign(0.9 * each + 0.1 * gradient)
        self.optimizer.apply_gradients(zip(gradients, self.weights, strict=True))

    def kept_for_the_log(self) -> None:
        gradients = self.gradients()
        for each, gradient in zip(self.sums, gradients, strict=True):
            each.assign(gradient)
        self.optimizer.apply_gradients(zip(gradients, self.weights, strict=True))

    def rate_of_zero(self) -> None:
        self.optimizer.learning_rate.assign(0.0)
        self.mean_for_the_log()


WAIT = ("if_statement", "cond", "clipped", "summed_in_a_function", "own_descent", "now_and_then")
DO_NOT = ("every_step", "own_momentum", "mean_for_the_log", "kept_for_the_log")


def trained(log: Path, name: str, steps: int, *, eagerly: bool) -> tuple[list[bool], list[Report]]:
    """For each step, whether it has changed the weight, and its report."""
    training, changed = Training(), []
    tf.config.run_functions_eagerly(eagerly)
    try:
        step = tb_gradflow.watch(log, update_freq=1)(getattr(training, name))
        for _ in range(steps):
            before = training.weight.numpy()
            step()
            changed.append(bool(np.any(training.weight.numpy() != before)))
        step.flush()
    finally:
        tf.config.run_functions_eagerly(False)
    found = tb_gradflow.open_log(log)
    return changed, [found.report(number) for number in found.steps]


def waiting(report: Report) -> dict[str, str]:
    """By variable, what the report says where it says that they wait."""
    found = [each for each in report.findings if each.cause == "gradient_not_applied"]
    return {name: each.message for each in found for name in each.variables if "turn" in each.message}


@pytest.mark.parametrize(
    ("name", "eagerly"), [*((name, False) for name in WAIT), *((name, True) for name in WAIT if name != "now_and_then")]
)
def test_a_weight_that_stands_still_waits_for_its_turn(tmp_path: Path, name: str, eagerly: bool) -> None:
    changed, reports = trained(tmp_path, name, N + 1, eagerly=eagerly)

    assert changed == [False, False, True, False]
    assert [bool(waiting(each)) for each in reports] == [True, True, False, True]
    assert all(each.healthy for each in reports)
    assert set(waiting(reports[0])) == {"weight", "other"}
    assert all(finding.severity == "info" for each in reports for finding in each.findings)


def test_an_eager_step_that_only_drops_its_gradient_says_nothing_of_turns(tmp_path: Path) -> None:
    """Nothing in such a step shows that another one updates the weight."""
    _, reports = trained(tmp_path, "now_and_then", 2, eagerly=True)

    assert not any(waiting(each) for each in reports)


@pytest.mark.parametrize("eagerly", [False, True], ids=["compiled", "eager"])
@pytest.mark.parametrize("name", DO_NOT)
def test_a_weight_that_moves_waits_for_nothing(tmp_path: Path, name: str, eagerly: bool) -> None:
    changed, reports = trained(tmp_path, name, 2, eagerly=eagerly)

    assert all(changed)
    assert not any(each.findings for each in reports)


def test_another_reason_to_stand_still_goes_first(tmp_path: Path) -> None:
    changed, reports = trained(tmp_path, "rate_of_zero", 2, eagerly=False)

    assert not any(changed)
    assert not any(waiting(each) for each in reports)
    assert "learning rate is 0" in reports[0].findings[0].message


def test_the_lines_of_the_sum_and_of_the_condition_are_named(tmp_path: Path) -> None:
    _, reports = trained(tmp_path, "if_statement", 1, eagerly=False)
    lines = Path(__file__).read_text().splitlines()
    place = next(number for number, line in enumerate(lines, 1) if "def if_statement" in line)

    message = waiting(reports[0])["weight"]

    assert f"`each.assign_add` (test_accumulation_by_hand.py:{place + 2}) adds their gradients" in message
    assert f"only under a condition (test_accumulation_by_hand.py:{place + 4})" in message


def test_a_sum_that_nobody_applies_is_a_warning_in_the_end(tmp_path: Path) -> None:
    """Nothing is added up over so many steps."""
    training = Training()

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step() -> None:
        for each, gradient in zip(training.sums, training.gradients(), strict=True):
            each.assign_add(gradient)

    for _ in range(70):
        step()
    step.flush()
    log = tb_gradflow.open_log(tmp_path)

    assert log.report(10).healthy
    assert waiting(log.report(10))
    assert not log.report(69).healthy


class Model(keras.Model):
    """Adds gradients up in its `train_step`."""

    def __init__(self, update: Callable[[Model], Any]) -> None:
        super().__init__()
        self.dense, self.update = keras.layers.Dense(2), update
        self.dense.build((None, 3))
        self.count = tf.Variable(0, trainable=False)
        self.sums = [tf.Variable(tf.zeros_like(each), trainable=False) for each in self.dense.trainable_variables]

    def call(self, x: Any) -> Any:
        return self.dense(x)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        for each, gradient in zip(self.sums, tape.gradient(loss, self.trainable_variables), strict=True):
            each.assign_add(gradient)
        self.count.assign_add(1)
        self.update(self)
        return {"loss": loss}

    def applied(self) -> None:
        self.optimizer.apply_gradients(zip(self.sums, self.trainable_variables, strict=True))
        for each in self.sums:
            each.assign(tf.zeros_like(each))


@pytest.mark.parametrize("eagerly", [False, True], ids=["compiled", "eager"])
def test_a_train_step_of_keras_waits_likewise(tmp_path: Path, eagerly: bool) -> None:
    model = Model(lambda self: tf.cond(self.count % 2 == 0, self.applied, lambda: None))
    model.compile("adam", "mse", run_eagerly=eagerly)

    alone = tb_gradflow.explain(model, X, Y)
    model.fit(X, Y, epochs=3, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path, 1)])
    log = tb_gradflow.open_log(tmp_path)

    assert waiting(alone)
    assert [bool(waiting(log.report(step))) for step in log.steps] == [True, False, True]


def test_gradients_of_an_embedding_wait_likewise(tmp_path: Path) -> None:
    table = tf.Variable(tf.ones([5, 2]), name="table")
    total = tf.Variable(tf.zeros([5, 2]), trainable=False)

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, [1, 3]) ** 2)
        total.scatter_add(tape.gradient(loss, table))

    step()
    step.flush()

    assert "table" in waiting(tb_gradflow.open_log(tmp_path).report())


def test_a_loop_that_nothing_wraps_waits_likewise(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        textwrap.dedent("""
            import tensorflow as tf
            weight = tf.Variable([1.0, 2.0], name="weight")
            total = tf.Variable(tf.zeros(2), trainable=False)
            optimizer = tf.keras.optimizers.SGD(0.1)
            for step in range(1, 5):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum((weight - 3.0) ** 2)
                total.assign_add(tape.gradient(loss, weight))
                if step % 3 == 0:
                    optimizer.apply_gradients([(total, weight)])
                    total.assign(tf.zeros_like(total))
        """)
    )

    from tb_gradflow.cli.main import main

    main(["run", "--logdir", str(tmp_path / "logs"), "--update-freq", "1", str(program)])
    (run,) = (tmp_path / "logs").iterdir()
    log = tb_gradflow.open_log(run)

    assert [bool(waiting(log.report(step))) for step in log.steps] == [True, True, False, True]
