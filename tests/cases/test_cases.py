"""The cases beside this file, each checked against TensorFlow alone (`verify.py`), are answered rightly."""

from __future__ import annotations

import pytest

from tests.cases.judge import Verdict, case_names, judged, share

# What is reached, rounded down; the misses are printed.
LEAST = {"status": 0.99, "op": 0.98, "cause": 0.98}


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    return judged(case_names())


@pytest.mark.parametrize("name", case_names())
def test_no_case_is_a_false_alarm(name: str, verdicts: dict[str, Verdict]) -> None:
    assert verdicts[name].alarms == 0, verdicts[name].mistakes


def test_the_cases_are_answered_rightly(verdicts: dict[str, Verdict]) -> None:
    told = "\n".join(f"{name}: {'; '.join(each.mistakes)}" for name, each in verdicts.items() if each.mistakes)
    for kind, least in LEAST.items():
        right, asked = share(verdicts.values(), kind)
        assert right >= least * asked, f"{kind} {right}/{asked}\n{told}"
