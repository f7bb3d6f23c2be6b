"""What `check_gradients` says of the seeds' gradients that somebody wrote, or took by finite differences."""

from __future__ import annotations

import pytest

from tests.seeds.checks import CHECKS, CheckProgram


@pytest.mark.parametrize("program", CHECKS, ids=[each.name for each in CHECKS])
def test_a_seeds_gradient_is_judged_as_it_stands(program: CheckProgram) -> None:
    check = program.check()

    assert tuple(each.verdict for each in check.arguments.values()) == program.verdicts
    assert check.correct is program.correct
    assert program.says in str(check)
