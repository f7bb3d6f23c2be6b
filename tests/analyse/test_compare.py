"""What is told of two runs beside each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_gradflow.analyse.report.compare import Difference, compare
from tb_gradflow.analyse.report.variable_matching import match
from tb_gradflow.record.report import (
    Diagnosis,
    Finding,
    GradientReport,
    OpReport,
    OverallVerdict,
    Severity,
    Status,
    VariableReport,
    VerdictKind,
)


def variable(
    name: str, status: Status = "connected", norm: float | None = 1.0, shape: tuple[int, ...] = (2,)
) -> VariableReport:
    gradient = None if norm is None else GradientReport(norm, norm, norm, 0.0, 0, 0)
    return VariableReport(name, status, shape, "float32", gradient)


def finding(cause: str, *variables: str, op: str = "", severity: Severity = "error") -> Finding:
    blamed = OpReport(op, "Less") if op else None
    return Finding(cause, severity, variables, blamed, None, "It is so.", "", 0, -1, ())


def diagnosis(*variables: VariableReport, findings: tuple[Finding, ...] = ()) -> Diagnosis:
    return Diagnosis(1, 0, 0, "", variables, findings, ())


def matches(before: list[VariableReport], now: list[VariableReport]) -> dict[str, tuple[str, str]]:
    return {now[pair.now].name: (before[pair.before].name, pair.how) for pair in match(before, now)}


def fates(difference: Difference) -> list[tuple[str, str, bool]]:
    return [(change.finding.cause, change.fate, change.is_new) for change in difference.findings]


def test_variables_are_one_by_their_name() -> None:
    before, now = [variable("a/kernel"), variable("b/kernel")], [variable("b/kernel"), variable("a/kernel")]

    assert matches(before, now) == {"a/kernel": ("a/kernel", "name"), "b/kernel": ("b/kernel", "name")}


def test_copies_with_other_numbers_are_matched_in_their_order() -> None:
    """A notebook cell that is run again makes `dense_2` of what was `dense`."""
    before = [variable("dense/kernel"), variable("dense_1/kernel")]
    now = [variable("dense_1/kernel"), variable("dense_2/kernel")]

    assert matches(before, now) == {
        "dense_1/kernel": ("dense/kernel", "number"),
        "dense_2/kernel": ("dense_1/kernel", "number"),
    }


def test_a_renamed_layer_is_guessed_by_shape_place_and_the_rest_of_its_name() -> None:
    before = [variable("in/kernel"), variable("hidden/kernel"), variable("hidden/bias"), variable("out/kernel")]
    now = [variable("in/kernel"), variable("middle/kernel"), variable("middle/bias"), variable("out/kernel")]

    found = matches(before, now)

    assert found["middle/kernel"] == ("hidden/kernel", "guess")
    assert found["middle/bias"] == ("hidden/bias", "guess")


@pytest.mark.parametrize(
    "other", [variable("middle/kernel", shape=(3,)), variable("middle/gain"), replace(variable("v"), dtype="int32")]
)
def test_what_has_nothing_in_common_is_not_guessed_to_be_one(other: VariableReport) -> None:
    assert matches([variable("hidden/kernel")], [other]) == {}


def test_a_renamed_variable_of_the_same_layer_is_guessed() -> None:
    assert matches([variable("head/kernel")], [variable("head/weight")]) == {"head/weight": ("head/kernel", "guess")}


def test_copies_of_another_shape_are_not_matched_in_their_order() -> None:
    assert matches([variable("dense/kernel")], [variable("dense_1/kernel", shape=(3,))]) == {}


def test_a_variable_is_guessed_at_most_once() -> None:
    one, two = [variable("hidden/kernel")], [variable("first/kernel"), variable("second/kernel")]

    assert len(matches(one, two)) == 1
    assert len(match(two, one)) == 1


def test_a_layer_of_another_name_on_the_other_side_of_a_known_one_is_not_guessed() -> None:
    before, now = [variable("hidden/kernel"), variable("out/bias")], [variable("out/bias"), variable("middle/kernel")]

    assert matches(before, now) == {"out/bias": ("out/bias", "name")}


def test_of_several_copies_the_one_between_the_same_neighbours_is_guessed() -> None:
    before = [variable("out/bias"), variable("dense/kernel")]
    now = [variable("dense_1/kernel"), variable("out/bias"), variable("dense_2/kernel")]

    assert matches(before, now) == {"out/bias": ("out/bias", "name"), "dense_2/kernel": ("dense/kernel", "guess")}


def test_a_copy_is_guessed_before_another_layer() -> None:
    now = [variable("other/kernel"), variable("dense_1/kernel"), variable("dense_2/kernel")]

    assert matches([variable("dense/kernel")], now) == {"dense_1/kernel": ("dense/kernel", "guess")}


def test_a_layer_more_shifts_nobody() -> None:
    before = [variable("dense/kernel", shape=(2,)), variable("dense_1/kernel", shape=(3,))]
    now = [*before, variable("dense_2/kernel", shape=(3,))]

    assert {how for _, how in matches(before, now).values()} == {"name"}


def test_a_model_that_was_renamed_as_a_whole_is_recognised() -> None:
    before = [variable(f"functional/block{number}/kernel") for number in range(200)]
    now = [variable(f"mine/block{number}/kernel") for number in range(200)]

    assert all(was.partition("/")[2] == is_.partition("/")[2] for is_, (was, _) in matches(before, now).items())
    assert len(matches(before, now)) == 200


def test_a_variable_is_better_if_a_gradient_arrives_where_none_did() -> None:
    left = diagnosis(variable("a", "disconnected", None), variable("b"), variable("c", "vanishing", 1e-9))
    right = diagnosis(variable("a"), variable("b", "zero", 0.0), variable("c", "zero", 0.0))

    changes = {change.name: change.change for change in compare(left, right).variables}

    assert changes == {"a": "better", "b": "worse", "c": "changed"}


def test_nobody_gains_or_loses_by_what_is_explained() -> None:
    meant = finding("expected", "a", severity="info")
    left = diagnosis(variable("a", "unused", None), findings=(meant,))
    right = diagnosis(variable("a"))

    assert compare(left, right).variables[0].change == "changed"


def test_variables_of_one_run_alone_are_new_and_gone() -> None:
    left, right = diagnosis(variable("a", shape=(1,))), diagnosis(variable("b"))

    assert [(each.name, each.change) for each in compare(left, right).variables] == [("b", "new"), ("a", "gone")]


def test_the_ratio_is_of_norms_that_are_finite_and_not_zero() -> None:
    left = diagnosis(variable("a", norm=0.2), variable("b", norm=0.0), variable("c", norm=None))
    right = diagnosis(variable("a", norm=0.5), variable("b"), variable("c"))

    assert [change.ratio for change in compare(left, right).variables] == [2.5, None, None]
    assert [change.ratio for change in compare(right, left).variables] == [0.4, None, None]


@pytest.mark.parametrize(("norm", "nans", "infs"), [(1.0, 1, 0), (1.0, 0, 1), (float("inf"), 0, 0)])
def test_there_is_no_ratio_to_a_gradient_that_is_not_finite(norm: float, nans: int, infs: int) -> None:
    """The norm leaves NaN and infinity out, so it may be finite."""
    broken = replace(variable("a", "nan"), gradient=GradientReport(norm, 1.0, 1.0, 0.0, nans, infs))

    for left, right in ((broken, variable("a")), (variable("a"), broken)):
        assert compare(diagnosis(left), diagnosis(right)).variables[0].ratio is None


def test_findings_are_one_if_they_blame_the_same_op_or_share_a_variable() -> None:
    left = (finding("nondiff_comparison", "a", op="model_1/Less"), finding("dead_relu", "b"), finding("unused_op", "c"))
    right = (finding("nondiff_comparison", "z", op="model_4/Less"), finding("dead_relu", "b", "d"))

    difference = compare(diagnosis(findings=left), diagnosis(findings=right))

    assert fates(difference) == [
        ("unused_op", "went", False),
        ("nondiff_comparison", "stayed", False),
        ("dead_relu", "stayed", False),
    ]


def test_findings_without_a_variable_and_an_op_are_one_by_their_cause() -> None:
    """For example, of a step in which nothing was measured."""
    nowhere = finding("not_measured")

    assert fates(compare(diagnosis(findings=(nowhere,)), diagnosis(findings=(nowhere,)))) == [
        ("not_measured", "stayed", False)
    ]
    for other in (finding("not_measured", "a"), finding("not_measured", op="Less")):
        for left, right in ((nowhere, other), (other, nowhere)):
            difference = compare(diagnosis(findings=(left,)), diagnosis(findings=(right,)))
            assert [fate for _, fate, _ in fates(difference)] == ["came", "went"]


def test_of_two_findings_that_share_a_variable_the_one_with_the_same_op_stayed() -> None:
    left = (finding("dead_relu", "a", op="first/Relu"), finding("dead_relu", "a", op="second/Relu"))
    right = (finding("dead_relu", "a", op="second/Relu"),)

    changes = compare(diagnosis(findings=left), diagnosis(findings=right)).findings

    assert [(each.fate, each.before.op.name) for each in changes if each.before and each.before.op] == [
        ("stayed", "second/Relu")
    ]
    assert [each.finding.op.name for each in changes if each.fate == "went" and each.finding.op] == ["first/Relu"]


def test_findings_follow_a_variable_to_its_new_name() -> None:
    left = diagnosis(variable("old/kernel", "zero", 0.0), findings=(finding("dead_relu", "old/kernel"),))
    right = diagnosis(variable("new/kernel", "zero", 0.0), findings=(finding("dead_relu", "new/kernel"),))

    assert fates(compare(left, right)) == [("dead_relu", "stayed", False)]


def test_a_finding_that_came_is_new_but_an_explanation_is_not() -> None:
    right = (finding("dead_relu", "a"), finding("frozen", "b", severity="info"))

    assert fates(compare(diagnosis(), diagnosis(findings=right))) == [
        ("dead_relu", "came", True),
        ("frozen", "came", False),
    ]


def test_a_finding_that_is_more_severe_or_holds_for_more_that_were_well_is_new() -> None:
    well = diagnosis(variable("a", "zero"), variable("b"), findings=(finding("dead_relu", "a", severity="warning"),))
    severer = diagnosis(variable("a", "zero"), variable("b"), findings=(finding("dead_relu", "a"),))
    wider = diagnosis(
        variable("a", "zero"), variable("b", "zero"), findings=(finding("dead_relu", "a", "b", severity="warning"),)
    )

    assert fates(compare(well, severer)) == [("dead_relu", "stayed", True)]
    assert fates(compare(well, wider)) == [("dead_relu", "stayed", True)]
    assert fates(compare(severer, well)) == [("dead_relu", "stayed", False)]


def test_a_run_beside_itself_has_no_difference() -> None:
    same = diagnosis(variable("a", "disconnected", None), findings=(finding("nondiff_sign", "a", op="Sign"),))

    difference = compare(same, same)

    assert {change.change for change in difference.variables} == {"same"}
    assert not any(change.is_new for change in difference.findings)


@pytest.mark.parametrize(("kind", "change"), [("nothing_found", "changed"), ("learned", "better")])
def test_a_gradient_that_has_come_to_nothing_repairs_nothing(kind: VerdictKind, change: str) -> None:
    """A fix that trains to nothing leaves tiny gradients with an explanation; so does one that has learned all."""
    before = diagnosis(variable("v", "disconnected", None), findings=(finding("nondiff_sign", "v"),))
    now = diagnosis(variable("v", "vanishing", 1e-12), findings=(finding("vanishing_depth", "v", severity="info"),))

    difference = compare(before, replace(now, verdict=OverallVerdict(kind, "", ())))

    assert [each.change for each in difference.variables] == [change]
