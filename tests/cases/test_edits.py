"""The edits that the reports of the cases offer are applied to a copy of each case, which is explained again."""

from __future__ import annotations

import functools
import shutil
from dataclasses import dataclass
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
    "kalman_gate_of_learned_width": "the soft step is too narrow for the scale of these distances",
    "sinkhorn_plan_with_tiny_epsilon": "the quotient after this one is not finite either",
    "spearman_loss_from_ranks": "a bias cancels in the differences of scores of the soft ranks, rightly so",
    "violated_triplets_counted": "a bias cancels in the difference of two distances, rightly so",
}

# Cases whose loss is seen to fall in a few steps of training after their edits; of every family some, since each costs
# seconds.
TRAINED = (
    "attention_over_a_row_of_padding",
    "attention_scores_behind_stop_gradient",
    "attention_span_sequence_mask",
    "binary_weights_by_sign_in_nested_function",
    "codebook_stopped_on_both_sides",
    "colour_histogram_matching_loss",
    "lowpass_cutoff_made_an_integer_bin",
    "masked_mean_of_an_empty_document",
    "memory_read_by_argmax_address",
    "memory_saving_block_returns_no_weight_gradient",
    "minibatch_stddev_of_equal_images",
)


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


@dataclass(frozen=True, slots=True)
class Repaired:
    """A bug with its edits applied.

    Attributes:
        left: What is still wrong; empty if nothing is.
        losses: The loss before each of a few steps of training; empty for a case that is not trained.
    """

    left: str
    losses: tuple[float, ...] = ()

    @property
    def falls(self) -> bool:
        """Whether the loss is lower in the last steps than before the first: draws make it noisy."""
        last = self.losses[-3:]
        return len(self.losses) > len(last) and sum(last) / len(last) < self.losses[0]


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory, asked: Asked) -> dict[str, Repaired]:
    """Each bug with an edit, after it."""
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
    after = {}
    names = sorted(name for name in found if name not in TRAINED)
    batches = [(names[start : start + TOGETHER], False) for start in range(0, len(names), TOGETHER)]
    for part, train in [*batches, (sorted(found.keys() & set(TRAINED)), True)]:
        batch = answers_of_a_batch(part, functools.partial(in_a_process, directory=directory, train=train))
        for name, answer in batch.items():
            if answer.report is None:
                after[name] = Repaired(answer.failure)
                continue
            now = {each["name"]: each["status"] for each in answer.report["variables"]}
            wanted = {variable for finding in found[name] for variable in finding["variables"]}
            left = [f"{each} {now.get(each)}" for each in sorted(wanted) if now.get(each) != "connected"]
            after[name] = Repaired(", ".join(left), answer.losses)
    return after


def test_an_edit_lets_the_gradient_arrive(repaired: dict[str, Repaired]) -> None:
    wrong = {name: each.left for name, each in repaired.items() if each.left and name not in KNOWN_LEFT}

    assert not wrong


@pytest.mark.parametrize("name", TRAINED)
def test_an_edited_case_trains(name: str, repaired: dict[str, Repaired]) -> None:
    assert name in repaired, "it has no edit"
    assert repaired[name].falls, repaired[name].losses


def test_most_cuts_have_an_edit(repaired: dict[str, Repaired]) -> None:
    assert len(repaired) >= LEAST_EDITED


@pytest.mark.parametrize("name", KNOWN_LEFT)
def test_what_is_known_to_be_left_is_left(name: str, repaired: dict[str, Repaired]) -> None:
    assert repaired[name].left, f"{name} is repaired by its edit now: take it out of KNOWN_LEFT"
