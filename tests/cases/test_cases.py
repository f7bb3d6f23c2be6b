"""The cases beside this file, each checked against TensorFlow alone (`verify.py`), are answered rightly."""

from __future__ import annotations

from tests.cases.judge import case_names, judge_all

# What is reached, rounded down; the misses are printed. No false alarm is ever all right.
LEAST = {"status": 0.99, "op": 0.98, "cause": 0.98}


def test_the_cases_are_answered_rightly() -> None:
    total, wrong = judge_all(case_names())

    told = "\n".join(f"{name}: {'; '.join(mistakes)}" for name, mistakes in wrong.items())
    assert total.alarms == 0, told
    for kind, least in LEAST.items():
        right, asked = getattr(total, kind)
        assert right >= least * asked, f"{kind} {right}/{asked}\n{told}"
