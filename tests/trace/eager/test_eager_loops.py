"""Eager steps with long loops: a solver takes out a value at each turn, and makes constants at each turn."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.trace.eager import returns, shadow_symbols
from tb_gradflow.trace.source import statements
from tests.trace.recording import read

RATE = [0.7]


@pytest.fixture(autouse=True)
def eagerly() -> Iterator[None]:
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def decided(turns: int, rate: Any) -> Any:
    """`if float(t) < …` at each turn."""
    time, y = tf.constant(0.0), tf.constant([1.0, 2.0])
    for _ in range(turns):
        time = time + 0.01 * tf.reduce_sum(rate)
        y = y + 0.001 * rate * y if float(time) < 0.5 else y - 0.001 * y
    return tf.reduce_mean(tf.square(y))


def stepped(turns: int, rate: Any) -> Any:
    """A step size of Python's, of another value at each turn, that is multiplied with the state again."""
    y = tf.constant([1.0, 2.0])
    for _ in range(turns):
        error = tf.reduce_max(tf.abs(y * rate))
        size = min(0.01, 0.001 * float(error))
        y = y - size * y
    return tf.reduce_mean(tf.square(y))


def copied(turns: int, rate: Any) -> Any:
    """The same plain number at each turn."""
    y = tf.constant([1.0, 2.0])
    for _ in range(turns):
        count = float(tf.reduce_sum(tf.sign(rate)))
        y = y * count
    return tf.reduce_mean(tf.square(y))


def calls_of(loss: Any, turns: int, directory: Path) -> int:
    """How many functions were called in order to find what came back of the values that left."""
    files, count = (returns.__file__, statements.__file__), 0

    def seen(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename in files

    rate = tf.Variable(RATE, name="rate")
    step = tb_gradflow.watch(directory, update_freq=1)(lambda: gradient(loss, turns, rate))
    sys.setprofile(seen)
    try:
        step()
    finally:
        sys.setprofile(None)
    step.flush()
    return count


def gradient(loss: Any, turns: int, rate: Any) -> None:
    with tf.GradientTape() as tape:
        value = loss(turns, rate)
    tape.gradient(value, [rate])


@pytest.mark.parametrize("loss", [decided, stepped, copied])
def test_twice_as_many_turns_are_twice_the_work(loss: Any, tmp_path: Path) -> None:
    calls_of(loss, 2, tmp_path / "first")
    once, twice = (calls_of(loss, turns, tmp_path / str(turns)) for turns in (150, 300))

    assert once > 150
    assert twice < 2.2 * once
    edges = [sum(len(op.inputs) for op in read(tmp_path / str(turns)).trace.ops) for turns in (150, 300)]
    assert edges[1] < 2.2 * edges[0]


@pytest.mark.parametrize("turns", [5, 200])
def test_a_value_that_comes_back_at_each_turn_is_found_in_a_long_loop_too(turns: int) -> None:
    rate = tf.Variable(RATE, name="rate")

    report = tb_gradflow.explain(lambda: stepped(turns, rate), variables=[rate])

    assert report.variables["rate"].status == "disconnected"
    [finding] = report.findings
    assert finding.cause == "python_escape"
    assert finding.source is not None
    assert finding.source.code == "size = min(0.01, 0.001 * float(error))"


def test_values_that_are_added_up_before_they_come_back_are_all_found() -> None:
    """The constant stands behind all of the exits, and is the value of none."""
    rates = [tf.Variable([0.1 * place + 0.137], name=f"rate_{place}") for place in range(100)]

    def loss() -> Any:
        total = 0.0
        for rate in rates:
            total += float(tf.reduce_sum(tf.square(rate)))
        return tf.constant(1.0) * total

    report = tb_gradflow.explain(loss, variables=rates)

    assert {each.status for each in report.variables.values()} == {"disconnected"}
    assert {finding.cause for finding in report.findings} == {"python_escape"}


def test_a_step_that_is_too_long_to_be_seen_is_not_recorded_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_symbols, "MOST_OPS", 200)
    rate = tf.Variable(RATE, name="rate")
    optimizer = tf.keras.optimizers.SGD(0.1)

    def step() -> Any:
        with tf.GradientTape() as tape:
            value = decided(100, rate)
        optimizer.apply_gradients(zip(tape.gradient(value, [rate]), [rate], strict=True))
        return value

    watched = tb_gradflow.watch(tmp_path, update_freq=1)(step)

    with pytest.warns(RuntimeWarning, match="more than 100,000 ops eagerly"):
        values = [float(watched()) for _ in range(3)]

    assert len(set(values)) == 3
    assert not list(tmp_path.glob("gradflow/*")) or not read(tmp_path).steps
