"""The edits that the reports of the cases offer are applied to a copy of each case, which is explained again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cases.conftest import Asked
from tests.cases.judge import HERE, TOGETHER, answers_of_a_batch, case_names, in_a_process, truth_of

BUGS = [name for name in case_names() if truth_of(name).get("verdict", "bug") == "bug"]

# Of these bugs an error has an edit.
LEAST_EDITED = 54

# Case -> why its edit alone does not connect every variable of its finding.
KNOWN_LEFT = {
    "attention_pool_softmax_by_hand_overflows": "the scores are as large as before, and so is the gradient",
    "coupling_flow_scale_overflows": "bounded, the scales still multiply to a gradient above 10,000",
    "earth_mover_loss_numpy_run_eagerly": "another function goes on with the sorted values in NumPy",
    "generator_moments_through_numpy": "what was an array of NumPy is indexed like one elsewhere",
    "hidden_markov_forward_without_scaling": "the product underflows as a whole, so that a bound leaves nothing",
    "house_prices_with_hand_written_logcosh": "all errors of this batch are beyond the bound",
    "kalman_gate_of_learned_width": "the soft step is too narrow for the scale of these distances",
    "sinkhorn_plan_with_tiny_epsilon": "the quotient after this one is not finite either",
    "violated_triplets_counted": "a bias cancels in the difference of two distances, rightly so",
}


def edited(text: str, edits: list[dict[str, Any]]) -> str:
    """The program with the edits in it. Each has to find the lines that it replaces."""
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda edit: -int(edit["line"])):
        first, last = edit["line"] - 1, edit["end_line"]
        assert lines[first:last] == edit["before"].split("\n")
        lines[first:last] = edit["after"].split("\n")
    return "\n".join(lines)


def with_edits(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The errors that offer an edit of the case itself."""
    errors = [finding for finding in report["findings"] if finding["severity"] == "error"]
    return [finding for finding in errors if finding["edit"] and Path(finding["edit"]["file"]).name == "case.py"]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory, asked: Asked) -> dict[str, str]:
    """For each bug with an edit, what is still wrong after it; empty if nothing is."""
    directory = tmp_path_factory.mktemp("edited")
    found: dict[str, list[dict[str, Any]]] = {}
    for name, answer in asked(BUGS).items():
        findings = with_edits(answer.report) if answer.report is not None else []
        if findings:
            found[name] = findings
            shutil.copytree(HERE / name, directory / name)
            text = (directory / name / "case.py").read_text(encoding="utf-8")
            edits = list({finding["edit"]["line"]: finding["edit"] for finding in findings}.values())
            (directory / name / "case.py").write_text(edited(text, edits), encoding="utf-8")
    problems = {}
    names = sorted(found)
    for start in range(0, len(names), TOGETHER):
        batch = answers_of_a_batch(names[start : start + TOGETHER], lambda part: in_a_process(part, directory))
        for name, answer in batch.items():
            if answer.report is None:
                problems[name] = answer.failure
                continue
            now = {each["name"]: each["status"] for each in answer.report["variables"]}
            wanted = {variable for finding in found[name] for variable in finding["variables"]}
            problems[name] = ", ".join(
                f"{each} {now.get(each)}" for each in sorted(wanted) if now.get(each) != "connected"
            )
    return problems


def test_an_edit_lets_the_gradient_arrive(left: dict[str, str]) -> None:
    wrong = {name: problem for name, problem in left.items() if problem and name not in KNOWN_LEFT}

    assert not wrong


def test_most_cuts_have_an_edit(left: dict[str, str]) -> None:
    assert len(left) >= LEAST_EDITED


@pytest.mark.parametrize("name", KNOWN_LEFT)
def test_what_is_known_to_be_left_is_left(name: str, left: dict[str, str]) -> None:
    assert left[name], f"{name} is repaired by its edit now: take it out of KNOWN_LEFT"
