"""`tb_gradflow.explain` answers each case beside this file as its `truth.json` says: status, op and cause.

The truths themselves are checked against TensorFlow alone, by `verify.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.cases.conftest import Asked
from tests.cases.judge import Kind, Verdict, case_names, judge, truth_of


@dataclass(frozen=True, slots=True)
class Miss:
    """A wrong answer that is known.

    Attributes:
        kinds: What is wrong of it.
        reason: Why it is, and what it would take to put it right.
    """

    kinds: frozenset[Kind]
    reason: str


# Case -> what is known to be wrong. Whoever fixes one takes its line out: the test then says so.
KNOWN_MISSES: dict[str, Miss] = {}


@pytest.fixture(scope="module")
def verdicts(request: pytest.FixtureRequest, asked: Asked) -> dict[str, Verdict]:
    """Of the selected cases: `-k NAME` runs that case alone."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function) and item.path == request.path]
    selected = {str(item.callspec.params["name"]) for item in items if "verdicts" in item.fixturenames}
    return {name: judge(truth_of(name), answer) for name, answer in asked(sorted(selected)).items()}


@pytest.mark.parametrize("name", case_names())
def test_a_case_is_answered_as_its_truth_says(name: str, verdicts: dict[str, Verdict]) -> None:
    mistakes = verdicts[name].mistakes
    known = KNOWN_MISSES[name].kinds if name in KNOWN_MISSES else frozenset()

    wrong = [mistake.text for mistake in mistakes if mistake.kind not in known]
    assert not wrong, "\n".join(wrong)
    repaired = known - {mistake.kind for mistake in mistakes}
    assert not repaired, f"{sorted(repaired)} of {name} is right now: take it out of KNOWN_MISSES"


def test_each_known_miss_is_a_case_and_has_a_reason() -> None:
    assert set(KNOWN_MISSES) <= set(case_names())
    assert all(miss.kinds and miss.reason for miss in KNOWN_MISSES.values())
