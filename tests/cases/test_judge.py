"""The judge of the cases finds each kind of mistake, so that a case can fail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cases.judge import Answer, answers_of_a_batch, in_a_process, judge

BUG: dict[str, Any] = {
    "verdict": "bug",
    "cause": "nondiff_rounding",
    "blocking_ops": ["Round"],
    "variables": {"kernel": {"status": "disconnected"}, "bias": {"status": "connected"}},
    "all_others": "connected",
}
HEALTHY: dict[str, Any] = {
    "verdict": "healthy",
    "cause": "healthy_trap",
    "blocking_ops": [],
    "variables": {"kernel": {"status": "connected"}},
}
RIGHT = {"kernel": "disconnected", "bias": "connected"}


def finding(cause: str = "nondiff_rounding", op: str = "Round", *variables: str, severity: str = "error") -> Any:
    return {"cause": cause, "op": {"type": op}, "variables": list(variables or ["kernel"]), "severity": severity}


def answer(statuses: dict[str, str], *findings: Any) -> Answer:
    variables = [{"name": name, "status": status} for name, status in statuses.items()]
    return Answer({"variables": variables, "findings": list(findings)})


def kinds(truth: dict[str, Any], given: Answer) -> set[str]:
    return {mistake.kind for mistake in judge(truth, given).mistakes}


def test_a_right_answer_has_no_mistake() -> None:
    assert kinds(BUG, answer(RIGHT, finding())) == set()
    assert kinds(HEALTHY, answer({"kernel": "connected"})) == set()


@pytest.mark.parametrize(
    ("wrong", "given"),
    [
        ("status", answer({**RIGHT, "kernel": "zero"}, finding())),
        ("status", answer({"kernel": "disconnected"}, finding())),
        ("status", answer({**RIGHT, "another": "zero"}, finding())),
        ("op", answer(RIGHT, finding("nondiff_rounding", "Floor"))),
        ("cause", answer(RIGHT, finding("nondiff_sign"))),
        ("alarm", answer(RIGHT, finding(), finding("dead_relu", "Relu", "bias"))),
    ],
)
def test_a_wrong_answer_to_a_bug_is_a_mistake_of_its_kind(wrong: str, given: Answer) -> None:
    assert kinds(BUG, given) == {wrong}


def test_a_bug_without_a_finding_is_missed() -> None:
    assert kinds(BUG, answer(RIGHT)) == {"op", "cause"}
    assert kinds({**BUG, "any_cause": True, "blocking_ops": []}, answer(RIGHT)) == {"cause"}


def test_a_healthy_case_that_is_accused_or_has_no_report_is_a_mistake() -> None:
    assert kinds(HEALTHY, answer({"kernel": "connected"}, finding(severity="warning"))) == {"alarm"}
    assert kinds(HEALTHY, answer({"kernel": "connected", "other": "zero"})) == {"alarm"}
    assert kinds(HEALTHY, Answer(None, "it raised")) == {"report", "status"}


def test_a_benign_case_with_an_error_is_a_mistake() -> None:
    assert kinds({**BUG, "verdict": "benign"}, answer(RIGHT, finding())) == {"alarm"}


def test_a_case_that_raises_fails_with_its_traceback_and_one_that_ends_the_process_with_its_code(
    tmp_path: Path,
) -> None:
    for name, line in {"raises": "raise RuntimeError('out of luck')", "ends": "import os; os._exit(7)"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "case.py").write_text(line, encoding="utf-8")

    found = in_a_process(["raises", "ends", "later"], tmp_path)

    assert set(found) == {"raises", "ends"}
    assert found["raises"].report is found["ends"].report is None
    assert "out of luck" in found["raises"].failure
    assert "the process ended with 7" in found["ends"].failure


def test_a_case_that_fails_in_company_is_asked_alone_and_takes_no_other_along() -> None:
    """`ends` ends every process that it is in, `spoilt` fails only after another case."""
    report = Answer({"variables": [], "findings": []})
    asked: list[list[str]] = []

    def run(names: Sequence[str]) -> dict[str, Answer]:
        asked.append(list(names))
        found = {}
        for name in names:
            failed = name == "ends" or (name == "spoilt" and len(names) > 1)
            found[name] = Answer(None, "failed") if failed else report
            if name == "ends":
                break
        return found

    found = answers_of_a_batch(["first", "spoilt", "ends", "last"], run)

    assert [name for name, each in found.items() if each.report is None] == ["ends"]
    assert list(found) == ["first", "spoilt", "ends", "last"]
    assert asked == [["first", "spoilt", "ends", "last"], ["spoilt"], ["ends"], ["last"]]
