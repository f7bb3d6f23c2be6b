"""The input of an op that may be to blame is moved: does its output react?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.record.experiments import Reaction
from tb_gradflow.record.report import Finding
from tests.trace.experiments.logs import tried_in

Loss = Callable[[], Any]


def reactions_in(directory: Path) -> dict[str, Reaction]:
    """Those in the log of a run, by type of op."""
    return {of.ops[each.op].type: each for of, known in tried_in(directory) for each in known.reactions}


def trained(loss: Loss, variables: list[Any], directory: Path, *, compiled: bool = True) -> dict[str, Reaction]:
    optimizer = keras.optimizers.SGD(0.0)
    optimizer.build(variables)

    def step() -> Any:
        with tf.GradientTape() as tape:
            value = loss()
        optimizer.apply_gradients(
            (gradient, each)
            for gradient, each in zip(tape.gradient(value, variables), variables, strict=True)
            if gradient is not None
        )
        return value

    watched = tb_gradflow.watch(directory)(tf.function(step) if compiled else step)
    for _ in range(2):
        watched()
    return reactions_in(directory)


def finding_of(loss: Loss, variables: list[Any]) -> Finding:
    [found] = tb_gradflow.explain(loss, variables=variables).findings
    return found


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])
def test_a_step_reacts_to_large_moves_alone(tmp_path: Path, compiled: bool) -> None:
    place, weight = tf.Variable([1.4, 0.2, -3.0], name="place"), tf.Variable(1.0, name="weight")

    found = trained(
        lambda: weight * tf.reduce_sum(tf.round(place) * [1.0, 2.0, 3.0]), [place, weight], tmp_path, compiled=compiled
    )["Round"]

    assert [found.size, found.amount, found.still] == pytest.approx([3.0, 0.3, 0.03])
    assert found.changed == pytest.approx(1 / 3)  # 1.4 becomes 1.7; the others stay
    assert found.change == 1.0
    assert abs(found.after - found.before) == pytest.approx(1.0)


def test_what_is_flat_there_reacts_to_no_small_move(tmp_path: Path) -> None:
    rows, weight = tf.Variable([-2.0, -3.0, -4.0], name="rows"), tf.Variable(1.0, name="weight")

    found = trained(lambda: weight + tf.reduce_sum(tf.nn.relu(rows)), [rows, weight], tmp_path)["Relu"]

    assert [found.amount, found.still] == pytest.approx([4.0, 0.4])
    assert found.change == 2.0  # -2 + 4; the others stay below zero


def test_what_reacts_at_once_is_stopped_and_not_flat(tmp_path: Path) -> None:
    kept, weight = tf.Variable([1.0, 2.0], name="kept"), tf.Variable(1.0, name="weight")

    found = trained(lambda: weight * tf.reduce_sum(tf.stop_gradient(kept) ** 2), [kept, weight], tmp_path)

    assert found["StopGradient"].still == 0.0
    assert found["StopGradient"].change == pytest.approx(0.002, rel=1e-3)


def test_only_this_op_is_given_another_value(tmp_path: Path) -> None:
    place, weight = tf.Variable(1.4, name="place"), tf.Variable(1.0, name="weight")

    found = trained(lambda: weight * (tf.round(place) + 100.0 * tf.stop_gradient(place)), [place, weight], tmp_path)

    assert abs(found["Round"].after - found["Round"].before) == pytest.approx(1.0, abs=1e-3)


def test_what_becomes_an_integer_first_is_moved_before_that(tmp_path: Path) -> None:
    length, weight = tf.Variable(3.5, name="length"), tf.Variable(1.0, name="weight")

    found = trained(
        lambda: weight * tf.reduce_sum(tf.sequence_mask(length, 8, dtype=tf.float32)), [length, weight], tmp_path
    )

    assert found["Less"].size == 3.5
    assert found["Less"].changed == 0.5  # seven of eight instead of three
    assert found["Less"].change == 1.0


def test_an_op_in_a_branch_and_in_a_function(tmp_path: Path) -> None:
    place, weight = tf.Variable(1.4, name="place"), tf.Variable(1.0, name="weight")

    @tf.function
    def inner(value: Any) -> Any:
        return tf.round(value)

    found = trained(
        lambda: weight * tf.cond(weight > 0, lambda: inner(place), lambda: tf.floor(place)), [place, weight], tmp_path
    )

    assert "Floor" not in found
    assert found["Round"].change == 1.0


def test_an_op_that_runs_several_times_is_left_alone(tmp_path: Path) -> None:
    place, weight = tf.Variable(1.4, name="place"), tf.Variable(1.0, name="weight")

    def loss() -> Any:
        total = tf.constant(0.0)
        for _ in tf.range(3):
            total += tf.round(place + total)
        return weight * total

    assert "Round" not in trained(tf.autograph.to_graph(loss), [place, weight], tmp_path)


def test_in_a_fit(tmp_path: Path) -> None:
    class Rounds(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return tf.round(x)

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), Rounds(), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    x = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")

    model.fit(x, x[:, :1], epochs=2, verbose=0, callbacks=[GradFlowCallback(tmp_path)])

    assert 0 < reactions_in(tmp_path)["Round"].changed <= 1
    evidence = [each for finding in tb_gradflow.open_log(tmp_path).report().findings for each in finding.evidence]
    assert any(each.kind == "reaction" and "`tf.round`" in each.text for each in evidence)


def test_the_op_that_reacts_is_named_and_not_a_dead_path_beside_it() -> None:
    place = tf.Variable(2.3, name="place")

    found = finding_of(lambda: (3.0 * tf.round(place) + 0.0 * place - 5.0) ** 2, [place])

    assert (found.cause, found.op and found.op.type) == ("nondiff_rounding", "Round")


def test_a_dead_path_alone_is_named() -> None:
    place, weight = tf.Variable(2.3, name="place"), tf.Variable(1.0, name="weight")

    found = finding_of(lambda: (weight + 0.0 * place - 5.0) ** 2, [place, weight])

    assert (found.cause, found.op and found.op.type) == ("mask_multiplies_to_zero", "Mul")
    assert [each.text for each in found.evidence if each.kind == "reaction"] == [
        "Moving the input of `*` by up to 23 does not change its output."
    ]


def test_a_dead_path_beside_one_that_learns_is_no_finding() -> None:
    place = tf.Variable(2.3, name="place")

    report = tb_gradflow.explain(lambda: (3.0 * place + 0.0 * tf.round(place) - 5.0) ** 2, variables=[place])

    assert report.healthy
