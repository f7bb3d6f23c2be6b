"""All rules on the recorded logs of real trainings: what is said about each is true, and was looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_gradflow.cli.demo import telling_report
from tb_gradflow.demo.gallery import DEMOS, Demo
from tests.cases.judge import Answer, case_names, judge, truth_of
from tests.recordings.expected import expected, said_of
from tests.recordings.logs import group, groups, names, opened
from tests.recordings.programs import PROGRAMS
from tests.recordings.record import slug

CASES, REPAIRED = list(group("cases")), list(group("repaired"))


@pytest.mark.parametrize("name", names())
def test_what_is_said_about_a_log_is_what_somebody_looked_at(name: str, tmp_path: Path) -> None:
    """If a change is intended: `python -m tests.recordings.expected`, and read `git diff`."""
    of, _, short = name.partition("/")

    assert said_of(opened(name, tmp_path)).splitlines() == expected(of)[short].rstrip("\n").splitlines()


@pytest.mark.parametrize("name", CASES)
def test_the_log_of_a_case_is_judged_as_its_truth_says(name: str, tmp_path: Path) -> None:
    report = opened(f"cases/{name}", tmp_path).report()

    assert not judge(truth_of(name), Answer(report.to_dict())).mistakes


@pytest.mark.parametrize("name", REPAIRED)
def test_the_log_of_a_repaired_case_has_no_error(name: str, tmp_path: Path) -> None:
    report = opened(f"repaired/{name}", tmp_path).report()

    assert not [finding.cause for finding in report.findings if finding.severity == "error"]


@pytest.mark.parametrize("demo", [demo for demo in DEMOS if demo.name != "resnet50"], ids=lambda demo: demo.name)
def test_the_logs_of_a_demonstration_show_its_cause_and_that_it_is_fixed(demo: Demo, tmp_path: Path) -> None:
    for variant, fixed in demo.variants:
        report = telling_report(opened(f"demos/{demo.name}_{variant}", tmp_path / variant))

        assert report.healthy or not fixed
        assert fixed or demo.cause in {finding.cause for finding in report.findings}


def test_every_log_of_a_case_is_of_one_that_there_is() -> None:
    assert set(CASES) <= set(case_names())


def test_every_program_has_a_log() -> None:
    """`python -m tests.recordings.record 'programs/*'`."""
    assert set(group("programs")) == set(map(slug, PROGRAMS))


def test_nothing_is_expected_of_a_log_that_is_gone() -> None:
    assert {f"{of}/{name}" for of in groups() for name in expected(of)} == set(names())


def test_a_log_holds_no_path_of_a_machine() -> None:
    for of in groups():
        for name, log in group(of).items():
            assert "/tmp/" not in log, name
            assert "site-packages" not in log, name
