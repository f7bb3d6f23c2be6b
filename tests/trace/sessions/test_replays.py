"""What changes something on the way to a loss that the program does not fetch is not run a second time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from tests.trace.sessions.sessions import recording

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def branches_of_tensorflow_1() -> Iterator[None]:
    before = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    yield
    if before:
        v1.enable_control_flow_v2()


def counted_by_assignment(counter: Any, is_training: Any) -> Any:
    with tf.control_dependencies([v1.assign_add(counter, 1.0)]):
        return counter.read_value()


def counted_in_a_branch(counter: Any, is_training: Any) -> Any:
    """As batch normalization updates its moving averages."""

    def counted() -> Any:
        with tf.control_dependencies([v1.assign_add(counter, 1.0)]):
            return tf.identity(2.0)

    return v1.cond(is_training, counted, lambda: tf.identity(counter))


def counted_by_its_result(counter: Any, is_training: Any) -> Any:
    return 2.0 * v1.assign_add(counter, 1.0)


def trained(counting: Callable[[Any, Any], Any], *, resources: bool) -> tuple[float, float]:
    """What three steps count, and the weight after them."""
    graph = tf.Graph()
    with graph.as_default(), v1.Session() as session:
        weight = v1.get_variable("weight", initializer=1.0, use_resource=resources)
        counter = v1.get_variable("counter", initializer=0.0, trainable=False, use_resource=resources)
        is_training = v1.placeholder(tf.bool)
        # Its gradient needs neither the loss nor the count.
        loss = weight * 3.0 + counting(counter, is_training)
        step = v1.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=[weight])
        also = loss.op.inputs[1].op  # the program counts in each step
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run([step, also], {is_training: True})
        counted, trained = map(float, session.run([counter, weight]))
        return counted, trained


@pytest.mark.parametrize("resources", [False, True], ids=["references", "resources"])
@pytest.mark.parametrize("counting", [counted_by_assignment, counted_in_a_branch, counted_by_its_result])
def test_what_the_loss_changes_is_changed_once(
    counting: Callable[[Any, Any], Any], resources: bool, tmp_path: Path
) -> None:
    with recording(tmp_path) as runs:
        recorded = trained(counting, resources=resources)

    assert recorded == trained(counting, resources=resources)
    assert recorded[0] == 3.0
    assert runs.log().steps == (0, 1, 2)
