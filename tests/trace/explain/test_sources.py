"""Every class of source and target that people request gradients with, in each form in which they type it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.serve.reports.report import Report
from tests.trace.source_programs import FUNCTIONS, GRAPHS, STEPS, Expected

v1 = tf.compat.v1


def _named(program: Any) -> str:
    return program.name if isinstance(program, Expected) else str(program)


@pytest.fixture(params=["compiled", "eagerly"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """As `tf.function` has it, or with `tf.config.run_functions_eagerly(True)`."""
    tf.config.run_functions_eagerly(request.param == "eagerly")
    yield request.param
    tf.config.run_functions_eagerly(False)


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("program", FUNCTIONS, ids=_named)
def test_explain_says_what_each_source_gets(program: Expected) -> None:
    function, args, sources = program.build()

    report = tb_gradflow.explain(function, args=args, variables=sources)

    assert _statuses(report) == list(program.statuses), str(report)
    assert _causes(report) == sorted(program.causes), str(report)


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("program", FUNCTIONS, ids=_named)
def test_explain_says_the_same_of_a_compiled_function(program: Expected) -> None:
    function, args, sources = program.build()

    report = tb_gradflow.explain(tf.function(function), args=args, variables=sources)

    assert _statuses(report) == list(program.statuses), str(report)
    assert _causes(report) == sorted(program.causes), str(report)


def _in_a_branch(x: Any) -> Any:
    return tf.cond(x[0] > 1, lambda: tf.reduce_sum(tf.round(x)), lambda: tf.reduce_sum(tf.floor(x)))


def _in_a_loop(x: Any) -> Any:
    return tf.while_loop(lambda i, _: i < 2, lambda i, total: (i + 1, total + tf.reduce_sum(x**2)), (0, 0.0))[1]


def _in_two_functions(x: Any) -> Any:
    return tf.function(lambda: tf.reduce_sum(tf.sin(x)))() + tf.reduce_sum(x)


@pytest.mark.parametrize(
    ("loss", "status"), [(_in_a_branch, "disconnected"), (_in_a_loop, "connected"), (_in_two_functions, "connected")]
)
def test_a_tensor_of_the_closure_is_known_wherever_a_compiled_function_uses_it(loss: Any, status: str) -> None:
    x = tf.constant([1.2, 2.7])

    report = tb_gradflow.explain(tf.function(lambda: loss(x)), args=(), variables=[x])

    assert _statuses(report) == [status], str(report)
    assert "output_not_used" not in _causes(report)


def test_a_size_that_a_gradient_is_requested_for_is_known_while_the_function_is_compiled() -> None:
    size, w = tf.constant([2, 2]), tf.Variable([1.0, 2.0, 3.0, 4.0], name="w")

    report = tb_gradflow.explain(
        tf.function(lambda: tf.reduce_sum(tf.linalg.diag_part(tf.reshape(w, size)))), args=(), variables=[w, size]
    )

    assert _statuses(report) == ["connected", "integer"], str(report)


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("program", STEPS, ids=_named)
def test_a_watched_step_says_what_each_source_got(program: Expected, tmp_path: Path) -> None:
    step = tb_gradflow.watch(str(tmp_path), update_freq=1)(program.build())
    if program.name == "variable as target" and not tf.config.functions_run_eagerly():
        # The value of the variable is no tensor of such a step, and nothing is added to it.
        with pytest.warns(RuntimeWarning, match="`kept` is requested|differentiate what was assigned to it"):
            step()
        return

    step()
    step.flush()

    report = tb_gradflow.open_log(tmp_path).report()
    # Variables that a compiled step reads and requests no gradient of are listed as well.
    measured = sorted(status for status in _statuses(report) if status != "not_measured")
    assert measured == sorted(program.statuses), str(report)
    assert _causes(report) == sorted(program.causes), str(report)


@pytest.mark.parametrize("program", GRAPHS, ids=_named)
def test_a_graph_that_is_fed_says_what_each_source_gets(program: Expected) -> None:
    with tf.Graph().as_default():
        loss, sources, feed = program.build()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            report = tb_gradflow.explain(loss, variables=sources, feed_dict=feed)

    assert _statuses(report) == list(program.statuses), str(report)
    assert _causes(report) == sorted(program.causes), str(report)


@pytest.mark.parametrize("program", GRAPHS, ids=_named)
def test_a_graph_that_is_not_fed_says_what_its_structure_shows(program: Expected) -> None:
    """Random numbers stand in for what is not fed, and the report says so; what is cut is cut whatever is fed."""
    with tf.Graph().as_default():
        loss, sources, feed = program.build()
        report = tb_gradflow.explain(loss, variables=sources)

    assert _statuses(report) == list(program.statuses), str(report)
    assert _causes(report) == sorted(program.causes), str(report)
    if feed and "connected" in program.statuses:
        assert "not fed" in str(report)


def _statuses(report: Report) -> list[str]:
    return [each.status for each in report.variables.values()]


def _causes(report: Report) -> list[str]:
    return sorted(finding.cause for finding in report.findings)
