"""A loss that the program sees become NaN or infinite has the next step recorded, whatever the cadence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.trace.sessions.sessions import Runs, recording

v1 = tf.compat.v1

STEPS = 8
BREAKS = 5
"""From this step on, a batch has a row whose probability is zero."""

SELDOM = 1000


class Classifier:
    """A sigmoid whose cross-entropy is written with a logarithm."""

    def __init__(self, graph: Any, *, resources: bool = True, drops: bool = False) -> None:
        with graph.as_default():
            self.rows = v1.placeholder(tf.float32, [None, 3])
            weight = v1.get_variable("weight", initializer=tf.ones([3, 1]), use_resource=resources)
            logits = self.rows @ weight
            if drops:
                logits = tf.nn.dropout(logits, 0.01, seed=1)
            self.loss = -tf.reduce_mean(v1.log(tf.sigmoid(logits)))
            self.step = v1.train.AdamOptimizer(0.01).minimize(self.loss)
            self.draw = v1.random_uniform([], seed=3)

    def batch(self, step: int) -> dict[Any, Any]:
        rows = np.full([4, 3], 0.1, np.float32)
        if step >= BREAKS:
            rows[1:] = -100.0
        return {self.rows: rows}


def trained(directory: Path, *, before: bool, resources: bool = True, drops: bool = False, **options: Any) -> Runs:
    """The loss is run in front of each step, or fetched in it."""
    graph = tf.Graph()
    with recording(directory, update_freq=SELDOM, **options) as runs:
        model = Classifier(graph, resources=resources, drops=drops)
        with v1.Session(graph=graph) as session, graph.as_default():
            session.run(v1.global_variables_initializer())
            for step in range(STEPS):
                batch = model.batch(step)
                if before:
                    session.run(model.loss, batch)
                    session.run(model.step, batch)
                else:
                    session.run([model.step, model.loss], batch)
    return runs


def test_the_step_that_becomes_nan_is_recorded_where_the_loss_is_looked_at_first(tmp_path: Path) -> None:
    log = trained(tmp_path, before=True).log()

    assert BREAKS in log.steps
    [finding] = [each for each in log.report(BREAKS).findings if each.severity == "error"]
    assert finding.op is not None
    assert (finding.cause, finding.op.type) == ("log_zero", "Log")


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("resources", [False, True])
def test_where_the_loss_is_fetched_in_the_step_that_step_is_run_again(
    tmp_path: Path, *, resources: bool, drops: bool
) -> None:
    """The weights are not finite any more: its gradient is computed from those of an earlier step."""
    log = trained(tmp_path, before=False, resources=resources, drops=drops).log()

    assert log.steps == (0, BREAKS)
    [finding] = [each for each in log.report().findings if each.severity == "error"]
    assert finding.op is not None
    assert (finding.cause, finding.op.type) == ("log_zero", "Log")


def numbers(directory: Path, **options: Any) -> list[bytes]:
    """The weights after each step, and a random number that is drawn then."""
    graph, found = tf.Graph(), []
    with recording(directory, **options):
        model = Classifier(graph, drops=True)
        with v1.Session(graph=graph) as session, graph.as_default():
            session.run(v1.global_variables_initializer())
            [weight] = v1.trainable_variables()
            for step in range(STEPS):
                _, loss = session.run([model.step, model.loss], model.batch(step))
                found += [np.asarray(each).tobytes() for each in (loss, *session.run([weight, model.draw]))]
    return found


def test_the_step_that_is_run_again_changes_nothing(tmp_path: Path) -> None:
    assert numbers(tmp_path / "one", update_freq=SELDOM) == numbers(
        tmp_path / "other", update_freq=SELDOM, catch_nonfinite=False
    )


@pytest.mark.parametrize("before", [True, False])
def test_without_catch_nonfinite_the_cadence_alone_decides(tmp_path: Path, *, before: bool) -> None:
    assert trained(tmp_path, before=before, catch_nonfinite=False).log().steps == (0,)


def test_a_loss_that_is_never_finite_does_not_record_each_step(tmp_path: Path) -> None:
    """It may be that of a batch that the program does not train with."""
    graph = tf.Graph()
    with recording(tmp_path, update_freq=SELDOM) as runs:
        model = Classifier(graph)
        with v1.Session(graph=graph) as session, graph.as_default():
            session.run(v1.global_variables_initializer())
            for _ in range(20):
                session.run(model.loss, model.batch(BREAKS))
                session.run(model.step, model.batch(0))

    assert 1 < len(runs.log().steps) < 10
    assert runs.log().report().healthy
