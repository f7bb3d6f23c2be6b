"""The diagnosis as a whole: order, summary, and what is left open."""

from __future__ import annotations

import ast
import cProfile
import dataclasses
import importlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_gradflow.analyse import causes
from tb_gradflow.analyse.causes import precedence
from tb_gradflow.analyse.causes.catalogue import BY_FAMILY, CATALOGUE, FAMILIES
from tb_gradflow.analyse.causes.flat.local_saturation import LOCAL_FADING
from tb_gradflow.analyse.causes.not_finite.singular import CAUSE_OF_TYPE
from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import FORMAT, Session
from tests.analyse.builders import FINE, NAN, ZERO, Graph, sized

SESSION = Session(FORMAT, "0000000000000", "0", "2.21.0", "3.15.0", "model", ())


def healthy(layers: int = 2) -> Graph:
    graph = Graph()
    op = graph.variable("layer0/kernel")
    for number in range(1, layers):
        op = graph.op("MatMul", op, graph.variable(f"layer{number}/kernel"))
    graph.target(graph.op("Mean", op))
    for number in range(layers):
        graph.ask(f"layer{number}/kernel", FINE)
    return graph


def troubled() -> Graph:
    """A warning about two variables, then errors about one and about two, then something to know."""
    graph = Graph()
    rounded = graph.op("Round", graph.variable("a"), passes="none")
    masks = [graph.op("Less", graph.variable(name), passes="not_differentiable", dtype="bool") for name in ("b", "c")]
    both = graph.op("LogicalAnd", *masks, passes="not_differentiable", dtype="bool")
    kept = graph.op("Mul", graph.op("Cast", both, passes="dtype"))
    clipped = graph.op("Minimum", graph.variable("d"))
    skipped = graph.op("If", graph.variable("e"), first=1)
    for op in (clipped, skipped):
        graph.gradient(op, FINE)
    graph.target(graph.op("AddN", rounded, kept, clipped, skipped))
    for name in "abc":
        graph.ask(name)
    for name in "de":
        graph.ask(name, ZERO)
    return graph


def test_findings_come_by_severity_then_by_how_many_variables_they_take() -> None:
    told = [(finding.severity, finding.cause, finding.variables) for finding in troubled().diagnose().findings]

    assert told == [
        ("error", "nondiff_rounding", ("a",)),
        ("error", "nondiff_comparison", ("b",)),
        ("error", "nondiff_comparison", ("c",)),
        ("warning", "saturation_clip", ("d",)),
        ("info", "branch_not_taken", ("e",)),
    ]


def test_the_same_step_says_the_same_twice_and_a_topology_serves_all_steps() -> None:
    graph = troubled()
    trace, topology = graph.trace(), Topology(graph.trace())

    answers = [
        diagnose(trace, SESSION, graph.numbers(), graph.weight_numbers(), (0.5,), step, topology=topology)
        for step in (1, 2, 1)
    ]

    assert answers[0] == answers[2]
    assert dataclasses.replace(answers[1], step=1) == answers[0]
    assert dataclasses.replace(troubled().diagnose(), step=1) == answers[0]


def test_a_healthy_step_says_so() -> None:
    diagnosis = healthy(3).diagnose()

    assert diagnosis.summary == "Healthy: the gradient reaches all 3 trainable variables."
    assert (diagnosis.findings, diagnosis.unverified) == ((), ())
    assert (diagnosis.step, diagnosis.trace) == (7, 0)


def test_the_summary_counts_and_names_the_worst() -> None:
    graph = Graph()
    rounded = graph.op(
        "Round", graph.variable("a"), passes="none", api="tf.round", line="steps = tf.round(x)", name="head/Round"
    )
    graph.target(graph.op("Mean", graph.op("Mul", rounded, graph.variable("b"))))
    graph.ask("a")
    graph.ask("b", FINE)

    assert graph.diagnose().summary == (
        "1 of 2 trainable variables gets no gradient: tf.round in model.py:17 blocks it."
    )


@pytest.mark.parametrize(("kind", "plight"), [("ReluGrad", "zero"), ("ResizeBilinearGrad", "missing")])
def test_the_summary_of_a_second_derivative_speaks_of_the_users_own_op(kind: str, plight: str) -> None:
    forward = kind.removesuffix("Grad")
    graph = Graph()
    made = graph.op("MatMul", graph.variable("a"))
    made = graph.op(forward, made, api="tf.nice", line="y = tf.nice(x)")
    slope = graph.op(kind, made, passes="none", line="slope = tape.gradient(y, x)")
    graph.ops[slope] = dataclasses.replace(graph.ops[slope], backward=True)
    graph.target(graph.op("Mean", graph.op("Mul", slope, graph.variable("b"))))
    graph.ask("a")
    graph.ask("b", FINE)

    assert graph.diagnose().summary == (
        f"1 of 2 trainable variables gets no gradient: the second derivative of tf.nice in model.py:17 is {plight}."
    )


def test_info_alone_is_healthy() -> None:
    graph = healthy()
    graph.op("Tanh", graph.variable("bert/pooler/kernel"))
    graph.ask("bert/pooler/kernel")

    assert (
        graph.diagnose().summary == "Healthy: the gradient reaches 2 of 3 trainable variables; the other is explained."
    )


@pytest.mark.parametrize(
    ("copies", "pooled", "rest"),
    [
        (1, False, "no gradient is requested for the other."),
        (2, False, "no gradient is requested for the other 2."),
        (2, True, "1 is explained, and no gradient is requested for the other 2."),
    ],
)
def test_a_moving_average_is_what_nobody_asks_a_gradient_for(copies: int, pooled: bool, rest: str) -> None:
    graph = healthy()
    for copy in range(copies):
        graph.variable(f"average/{copy}", read=False)
        graph.ask(f"average/{copy}", outcome="not_asked")
    if pooled:
        graph.op("Tanh", graph.variable("bert/pooler/kernel"))
        graph.ask("bert/pooler/kernel")

    total = 2 + copies + pooled
    assert graph.diagnose().summary == f"Healthy: the gradient reaches 2 of {total} trainable variables; {rest}"


def test_a_teacher_behind_stop_gradient_is_what_nobody_asks_a_gradient_for() -> None:
    graph = healthy()
    stopped = graph.op("StopGradient", graph.variable("teacher"), passes="not_differentiable")
    graph.target(graph.op("Mean", stopped))
    graph.ask("teacher", outcome="not_asked", target=1, watched=False)

    diagnosis = graph.diagnose()

    assert [each.status for each in diagnosis.variables][-1] == "disconnected"
    assert diagnosis.summary == (
        "Healthy: the gradient reaches 2 of 3 trainable variables; no gradient is requested for the other."
    )


def test_a_step_in_which_no_gradient_is_requested_is_not_healthy() -> None:
    graph = Graph()
    graph.variable("kernel")

    diagnosis = graph.diagnose(measured=False)

    assert diagnosis.summary == "Not verified: no gradient was seen in this step."
    [finding] = diagnosis.findings
    assert (finding.cause, finding.severity) == ("not_measured", "warning")
    assert "tape.gradient(loss, model.trainable_variables)" in finding.fix


def test_what_the_recorder_noted_is_passed_on() -> None:
    graph = healthy()
    graph.notes.append("An op was left out.")

    assert graph.diagnose().unverified == ("An op was left out.",)


def test_an_edge_that_nobody_asked_about_is_no_cut_and_is_mentioned() -> None:
    graph = Graph()
    graph.target(graph.op("Mystery", graph.variable("kernel"), passes="unknown", name="model/mystery"))
    graph.ask("kernel", FINE)

    diagnosis = graph.diagnose()

    assert diagnosis.findings == ()
    assert "model/mystery" in diagnosis.unverified[0]


def test_every_number_in_a_report_is_finite() -> None:
    """JSON has no NaN; the log's float32 may hold anything."""
    graph = healthy()
    graph.rows[0] = (math.inf, math.inf, math.inf, 0.0, 0.0, 2.0)

    reports = [variable.gradient for variable in graph.diagnose().variables]

    assert all(
        math.isfinite(number) for report in reports if report is not None for number in dataclasses.astuple(report)
    )


def verdicts() -> set[str]:
    """Every cause that some rule can return: the literals in `Verdict(...)`, and the tables by op type."""
    words = {*CAUSE_OF_TYPE.values(), *LOCAL_FADING.values(), "expected"}
    for path in Path(causes.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Verdict":
                words |= {str(arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant)}
    return words


def test_every_verdict_has_a_cause_with_words_and_no_words_are_idle() -> None:
    """A verdict without words would end in an error in front of a user."""
    assert {cause.name for cause in CATALOGUE.values() if cause.text is not None} == verdicts()
    assert CATALOGUE.keys() - verdicts() == {
        *("mask_dropped", "override_without_effect", "python_constant", "index_out_of_range"),
        *("loss_spike", "gradient_clipped", "uneven_updates", "steps_skipped"),
        *("outlying_rows", "posterior_collapse", "term_dominates", "term_teaches_nothing", "terms_in_conflict"),
    }


def test_a_cause_lies_in_the_file_that_has_its_name() -> None:
    """So it is found by its word, and two causes cannot have one word."""
    folder = Path(causes.__file__).parent

    for family, listed in BY_FAMILY.items():
        for cause in listed:
            module = importlib.import_module(f"tb_gradflow.analyse.causes.{family}.{cause.name}")
            assert module.CAUSE is cause
    assert sum(map(len, BY_FAMILY.values())) == len(CATALOGUE)
    assert set(FAMILIES) == {path.parent.name for path in folder.glob("*/__init__.py")}


def test_the_rules_of_a_cause_have_their_place_in_the_order() -> None:
    """A rule that nobody asks is forgotten."""
    situations = [listed for name, listed in vars(precedence).items() if name.isupper() and isinstance(listed, tuple)]
    asked = {rule for listed in (*situations, *precedence.GIVEN.values()) for rule in listed if callable(rule)}

    for family, listed in BY_FAMILY.items():
        for cause in listed:
            module = importlib.import_module(f"tb_gradflow.analyse.causes.{family}.{cause.name}")
            assert getattr(module, "rule", None) in {*asked, None}, cause.name


def test_every_cut_has_its_place_in_the_order() -> None:
    assert len(set(precedence.CUT)) == len(precedence.CUT)
    assert set(precedence.CUT_PRECEDENCE) <= verdicts()
    assert {word for word in verdicts() if word.startswith("nondiff_")} - {"nondiff_sign"} <= set(
        precedence.CUT_PRECEDENCE
    )


@pytest.mark.parametrize(
    "row", [FINE, None, ZERO, NAN, sized(1e-9)], ids=["healthy", "cut", "zero", "not a number", "vanishing"]
)
def test_the_work_grows_no_faster_than_the_model(row: Any) -> None:
    """Eight and thirty thousand ops, 125 and 500 variables: if work grew with ops times variables, it would be sixteen
    times as much."""
    few, many = calls_of_a_diagnosis(125, row), calls_of_a_diagnosis(500, row)

    assert many < 8 * few


def calls_of_a_diagnosis(layers: int, row: Any) -> int:
    """How many functions are called."""
    graph = Graph()
    op = -1
    for layer in range(layers):
        op = graph.op("MatMul", *([op] if op >= 0 else []), graph.variable(f"layer{layer}/kernel"))
        for _ in range(58):
            op = graph.op("Tanh", op)
            graph.gradient(op, row or ZERO)
    op = graph.op("Round", op, passes="none" if row is None else "yes")
    graph.target(op)
    for layer in range(layers):
        graph.ask(f"layer{layer}/kernel", row)
    trace, numbers = graph.trace(), graph.numbers()
    weights = np.tile(np.array([1, 1, 0, 0], np.float32), (layers, 1))

    with cProfile.Profile() as profile:
        diagnosis = diagnose(trace, SESSION, numbers, weights, (0.5,), 0)

    assert len(diagnosis.findings) == (0 if row == FINE else 1)
    return sum(each.callcount for each in profile.getstats())


def test_a_variable_that_no_model_lists_is_shown_where_the_step_asks_for_its_gradient() -> None:
    """Whoever hands it to the tape trains it, and looks for it in the report."""
    graph = Graph()
    weighed = graph.op("Mul", graph.variable("log_vars", tracked=False), graph.variable("teacher", tracked=False))
    graph.target(graph.op("Mean", graph.op("Mul", weighed, graph.variable("dense/kernel"))))
    graph.ask("log_vars", FINE)
    graph.ask("teacher", FINE, outcome="not_asked")
    graph.ask("dense/kernel", FINE)

    shown = {each.name: each.status for each in graph.diagnose().variables if each.listed}

    assert shown["log_vars"] == shown["dense/kernel"] == "connected"
