"""Eager replicas and servers of parameters are told, not recorded; `explain` measures replicas on one device; with an
old TensorFlow replicas begin alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.trace.fit.keras3 import Fitting
from tb_gradflow.trace.log.workers import must_begin_alone
from tests.trace.recording import read
from tests.trace.training.test_replicas import found_by, started


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    directory = tmp_path_factory.mktemp("others")
    found = found_by(started("mirrored_others", str(directory)))
    assert "fit" in found, found
    return directory, found


@pytest.mark.parametrize("kind", ["fit", "loop"])
def test_eager_replicas_are_told_once_and_train_as_without_the_recorder(kind: str, others: tuple[Path, Any]) -> None:
    """What one of them shows would pass for the whole step."""
    directory, found = others

    plain, recorded, told = found[kind]

    assert recorded == plain
    [message] = told
    assert "does not record this training: its replicas run eagerly" in message
    assert not list((directory / kind / "gradflow").iterdir())


@pytest.mark.parametrize("kind", ["explain", "explain eagerly"])
def test_explain_takes_the_gradients_of_the_whole_batch_and_puts_every_replica_back(
    kind: str, others: tuple[Path, Any]
) -> None:
    _, found = others

    assert found[kind]["found"] == pytest.approx(found[kind]["expected"], rel=1e-4, abs=1e-6)
    assert found[kind]["unchanged"]


def test_explain_inside_of_the_strategys_scope_says_to_leave_it(others: tuple[Path, Any]) -> None:
    _, found = others

    assert found["explain in the scope"] == "explain runs one step on one device: call it outside of `strategy.scope()`"


def test_a_second_strategy_with_replicas_is_refused(others: tuple[Path, Any]) -> None:
    _, found = others

    single, first, second, *again = found["second strategy"]
    assert [single, first, *again] == [None] * 4
    assert "another strategy with several replicas was recorded in this process" in second


def test_parameter_servers_are_told_and_train_as_without_the_recorder(tmp_path: Path) -> None:
    found = found_by(started("parameter_servers", str(tmp_path)))

    assert "told" in found, found
    plain, recorded = found["loop"]
    assert recorded == plain
    [message] = found["told"]
    assert (
        "does not record this training: the workers of a ParameterServerStrategy run its steps independently" in message
    )
    assert not [*(tmp_path / "fit" / "gradflow").iterdir(), *(tmp_path / "loop" / "gradflow").iterdir()]


@pytest.mark.parametrize(
    ("version", "devices", "waits"),
    [("2.17.1", 2, True), ("2.17.1", 1, False), ("2.18.0", 2, False), ("2.21.0", 2, False)],
)
def test_with_an_old_tensorflow_a_step_begins_alone_where_it_may_have_replicas(
    version: str, devices: int, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its variables would have no values, once another function than the first run has been traced."""
    listed = [tf.config.LogicalDevice(f"/device:CPU:{number}", "CPU") for number in range(devices)]
    monkeypatch.setattr(tf, "__version__", version)
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: listed)
    step = tf.function(tf.square)

    assert must_begin_alone(step) == waits
    step(tf.constant(2.0))
    assert not must_begin_alone(step)


def test_a_step_that_is_postponed_is_recorded_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([True, False])
    monkeypatch.setattr("tb_gradflow.trace.watch.must_begin_alone", lambda step: next(answers))
    weight = tf.Variable(2.0)

    @tb_gradflow.watch(tmp_path, update_freq=100)
    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.square(weight * x)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))

    for _ in range(4):
        step(tf.constant(1.0))
    step.flush()

    assert read(tmp_path).steps == (1,)


def test_a_fit_is_postponed_once_whatever_optimizer_its_step_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that Keras knows of may never be built: a GAN has two of its own."""
    monkeypatch.setattr(Fitting, "must_begin_alone", True)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    callback = tb_gradflow.GradFlowCallback(tmp_path, update_freq=2)
    model.fit(tf.ones((12, 3)), tf.ones((12, 1)), batch_size=2, verbose=0, callbacks=[callback])

    assert read(tmp_path).steps == (1, 2, 4)
