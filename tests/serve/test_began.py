"""The text of a report says since when a finding holds that was not there from the first step on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_gradflow.record.report import Diagnosis
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.serve.runs import began
from tb_gradflow.serve.runs.began import beginnings
from tb_gradflow.serve.runs.history import History
from tests.serve.test_course import history_that_breaks_at

# What the structure of the sample shows in every step.
ALWAYS = "nondiff_comparison"


def told_of(history: History, step: int | None = None) -> dict[str, str]:
    diagnosis = history.diagnose(step)
    return {diagnosis.findings[place].cause: told for place, told in beginnings(history, diagnosis).items()}


@pytest.mark.parametrize("first", [1, 2, 63, 64, 998, 999])
def test_the_step_is_found_by_looking_at_a_few(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = history_that_breaks_at(tmp_path, first=first, steps=1000)
    looked: set[int | None] = set()
    diagnose = history.diagnose

    def counted(step: int | None = None) -> Diagnosis:
        looked.add(step)
        return diagnose(step)

    monkeypatch.setattr(history, "diagnose", counted)

    told = told_of(history)

    assert set(told.values()) == {f" It started in step {first}."}
    assert ALWAYS not in told
    assert len(looked) < 30


def test_what_holds_from_the_first_step_on_is_told_without_it(tmp_path: Path) -> None:
    assert told_of(history_that_breaks_at(tmp_path, first=0, steps=100)) == {}


def test_of_an_earlier_step_it_is_told_what_was_so_by_then(tmp_path: Path) -> None:
    history = history_that_breaks_at(tmp_path, first=50, steps=100)

    assert told_of(history, 49) == {}
    assert set(told_of(history, 51).values()) == {" It started in step 50."}


def test_of_a_model_of_which_a_step_takes_long_nothing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(began, "MOST_OPS", 0)

    assert told_of(history_that_breaks_at(tmp_path, first=50, steps=100)) == {}


def test_the_text_says_it(tmp_path: Path) -> None:
    history = history_that_breaks_at(tmp_path, first=50, steps=100)

    report = Report(history.diagnose(), "run", lambda: history)

    assert "It started in step 50." in report.text()
    assert "It started in step 50." in report.text_in_page
    assert "It started" not in Report(history.diagnose(), "run").text()
