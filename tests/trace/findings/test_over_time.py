"""What goes wrong in the course of a training, and what its last step is told then."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.serve.reports.report import Report

STEPS, BATCH = 60, 8


def trained(
    log_dir: Path, model: Any, x: Any, y: Any, *beside: Any, epochs: int = 1, **options: Any
) -> tuple[Report, Any]:
    recorder = GradFlowCallback(log_dir, update_freq=10, **options)
    history = model.fit(x, y, batch_size=BATCH, epochs=epochs, verbose=0, shuffle=False, callbacks=[*beside, recorder])
    return tb_gradflow.open_log(log_dir).report(), history.history["loss"]


def network(hidden: str = "elu") -> Any:
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(7)
    layers = [keras.Input((6,)), keras.layers.Dense(16, hidden, name="h"), keras.layers.Dense(1, name="o")]
    return keras.Sequential(layers, name="model")


def data() -> tuple[Any, Any]:
    x = np.random.default_rng(7).normal(size=(STEPS * BATCH, 6)).astype("float32")
    return x, x[:, :1] * 2 - 1


def each_batch(change: Callable[[int], Any]) -> Any:
    return keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: change(batch))


@pytest.mark.filterwarnings("error::RuntimeWarning:numpy")
def test_a_rate_that_grows_until_numbers_end(tmp_path: Path) -> None:
    model = network()
    model.compile(keras.optimizers.SGD(1e-4), "mse")

    grow = each_batch(lambda batch: model.optimizer.learning_rate.assign(1e-4 * 1.5**batch))
    report, _ = trained(tmp_path, model, *data(), grow)

    first = report.findings[0]
    assert first.severity == "error"
    assert "the training diverges" in first.message
    assert "where it started" in first.message
    assert "learning rate" in first.fix
    assert {finding.cause for finding in report.findings} == {"exploding_recurrence", "nonfinite_weights"}


def test_a_relu_behind_weights_that_are_not_finite_is_not_called_dead(tmp_path: Path) -> None:
    model = network("relu")
    model.compile(keras.optimizers.Adam(1e-2), "mse")
    x, y = data()
    x[25 * BATCH + 3, 2] = np.nan

    report, _ = trained(tmp_path, model, x, y)

    assert [finding.cause for finding in report.findings] == ["nonfinite_input", "nonfinite_weights"]
    assert report.findings[0].message.startswith("In step 25, where it started: ")


def test_a_loss_beyond_half_precision_beside_huge_gradients_is_told_as_that(tmp_path: Path) -> None:
    def summed(y: Any, p: Any) -> Any:
        difference = tf.cast(y, "float16") - tf.cast(p, "float16")
        return tf.reduce_sum(tf.square(difference), axis=1)

    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = network()
        model.compile(keras.optimizers.Adam(1e-3), summed)
        x, y = data()
        report, losses = trained(tmp_path, model, x, np.repeat(y * 60, 6, 1))
    finally:
        keras.config.set_dtype_policy(before)

    assert losses == [np.inf]
    assert (report.findings[0].cause, report.findings[0].severity) == ("fp16_overflow", "error")
    assert "float32" in report.findings[0].fix


def test_a_loss_weight_that_becomes_zero_is_told_with_its_beginning(tmp_path: Path) -> None:
    weight = tf.Variable(1.0, trainable=False)
    model = network()
    model.compile("sgd", lambda y, p: weight * tf.reduce_mean(tf.square(y - p), axis=-1))

    anneal = each_batch(lambda batch: weight.assign(1.0 if batch < STEPS // 2 else 0.0))
    report, _ = trained(tmp_path, model, *data(), anneal)

    [finding] = report.findings
    assert (finding.cause, len(finding.variables)) == ("mask_multiplies_to_zero", 4)
    assert "It started between the recorded steps 20 and 30." in " ".join(report.text().split())


@pytest.mark.parametrize("choose", ["in Python", "by an index"])
def test_parts_that_take_turns_are_no_error(choose: str, tmp_path: Path) -> None:
    """Of three adapters a step trains the one of its batch: after a round it is known that they take turns."""
    model = network()
    adapters = [tf.Variable(tf.eye(6), name=f"adapter_{place}") for place in range(3)]
    optimizer = keras.optimizers.SGD(1e-2)
    optimizer.build([*model.trainable_variables, *adapters])

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step(x: Any, y: Any, task: Any) -> Any:
        with tf.GradientTape() as tape:
            adapter = adapters[task] if choose == "in Python" else tf.stack(adapters)[task]
            loss = tf.reduce_mean((model(x @ adapter) - y) ** 2)
        variables = [*model.trainable_variables, *adapters]
        found = zip(tape.gradient(loss, variables), variables, strict=True)
        optimizer.apply_gradients([(gradient, variable) for gradient, variable in found if gradient is not None])
        return loss

    x, y = (tf.constant(part[:BATCH]) for part in data())
    for place in range(10):
        step(x, y, place % 3 if choose == "in Python" else tf.constant(place % 3))
    step.flush()

    log = tb_gradflow.open_log(tmp_path)
    assert {finding.severity for finding in log.report(0).findings} == {
        "error" if choose == "in Python" else "warning"
    }  # nobody can know yet
    (told,) = log.report(9).findings
    assert (told.severity, told.variables) == ("info", ("adapter_1", "adapter_2"))
    assert "Other steps do give them a gradient, most recently step 8." in told.message
    assert log.report(9).healthy


def test_units_that_die_in_a_training_are_counted(tmp_path: Path) -> None:
    """At a rate that is far too high most units are switched off by the first steps, and for good."""
    keras.utils.set_random_seed(0)
    hidden = keras.layers.Dense(64, "relu", name="hidden")
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(64, "relu"), hidden, keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.3), "mse")
    x, y = data()

    recorder = GradFlowCallback(tmp_path, update_freq=1)
    model.fit(x, y, batch_size=32, verbose=0, shuffle=False, callbacks=[recorder])
    log, single = tb_gradflow.open_log(tmp_path), tb_gradflow.explain(model, x[:32], y[:32])

    before = keras.Model(model.inputs, hidden.input)(x[:32])
    off = int(np.sum(~np.any(before @ hidden.kernel + hidden.bias > 0, axis=0)))
    [finding] = [each for each in single.findings if each.cause == "dead_units"]
    assert off >= 48
    assert finding.message.startswith(f"{off} of 64 units of ")
    assert finding.variables[0].endswith("hidden/bias")
    [finding] = [each for each in log.report().findings if each.cause == "dead_units"]
    assert re.search(r"; since step \d+, at least 48\.$", finding.message)
    assert all(each.cause != "dead_units" for each in log.report(step=0).findings)


@pytest.mark.parametrize("activation", ["softmax", "sigmoid", "tanh"])
def test_the_first_step_of_a_training_is_told_as_explain_tells_it(tmp_path: Path, activation: str) -> None:
    keras.utils.set_random_seed(0)
    steep = keras.initializers.RandomNormal(stddev=1e4)
    layers = [keras.layers.Dense(16, "relu"), keras.layers.Dense(4, activation, kernel_initializer=steep)]
    model = keras.Sequential([keras.Input((6,)), *layers])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).random((BATCH, 6), "float32")
    y = np.eye(4, dtype="float32")[np.arange(BATCH) % 4]

    alone = tb_gradflow.explain(model, x, y)
    trained(tmp_path, model, x, y)
    step = tb_gradflow.open_log(tmp_path).report(step=0)

    def told(report: Report) -> list[tuple[Any, ...]]:
        return [(each.cause, each.severity, each.variables, each.op and each.op.name) for each in report.findings]

    assert alone.findings[0].cause.startswith("saturation")
    assert alone.findings[0].severity == "error"
    assert told(step) == told(alone)


def test_a_later_step_is_told_what_was_measured_when_it_broke_first(tmp_path: Path) -> None:
    """Every second batch is empty; the weights stay finite, because what is not finite is dropped."""
    keras.utils.set_random_seed(7)
    net, optimizer = network(), keras.optimizers.SGD(0.01)
    x, y = data()

    @tb_gradflow.watch(tmp_path, update_freq=1)
    @tf.function
    def step(x: Any, y: Any, mask: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(net(x) - y) * mask) / tf.reduce_sum(mask)
        gradients = tape.gradient(loss, net.trainable_variables)
        kept = [tf.where(tf.math.is_finite(each), each, 0.0) for each in gradients]
        optimizer.apply_gradients(zip(kept, net.trainable_variables, strict=True))

    for number in range(12):
        step(x[:BATCH], y[:BATCH], tf.fill([BATCH, 1], float(number % 2 == 0)))
    step.flush()
    log = tb_gradflow.open_log(tmp_path)

    [first], [last] = log.report(1).findings, log.report(11).findings
    assert "`tf.reduce_sum(mask)` is exactly 0, and so is the numerator." in first.message
    assert last.message == f"{first.message} It was measured in step 1."
    assert (last.cause, last.op, last.source, last.began) == (first.cause, first.op, first.source, 1)
    assert last.evidence == first.evidence
    assert "inferred" not in str(log.report(11))
    assert "It started in" not in str(log.report(11))
    assert "is the cause" in log.report(11).summary
    assert not log.report(10).findings
