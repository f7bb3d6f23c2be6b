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

    def __init__(self, graph: Any) -> None:
        with graph.as_default():
            self.rows = v1.placeholder(tf.float32, [None, 3])
            weight = v1.get_variable("weight", initializer=tf.ones([3, 1]))
            self.loss = -tf.reduce_mean(v1.log(tf.sigmoid(self.rows @ weight)))
            self.step = v1.train.GradientDescentOptimizer(0.01).minimize(self.loss)

    def batch(self, step: int) -> dict[Any, Any]:
        rows = np.full([4, 3], 0.1, np.float32)
        if step >= BREAKS:
            rows[2] = -100.0
        return {self.rows: rows}


def trained(directory: Path, *, before: bool, **options: Any) -> Runs:
    """The loss is run in front of each step, or fetched in it."""
    graph = tf.Graph()
    with recording(directory, update_freq=SELDOM, **options) as runs:
        model = Classifier(graph)
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


def test_where_the_loss_is_fetched_in_the_step_the_next_one_is_recorded(tmp_path: Path) -> None:
    """The weights are not finite any more: it says since when."""
    log = trained(tmp_path, before=False).log()

    assert BREAKS + 1 in log.steps
    assert {each.cause for each in log.report().findings} == {"nonfinite_weights"}


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
