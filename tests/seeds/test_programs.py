"""Each of the seeds' programs is answered as it stands, compiled and eagerly, and in TensorFlow 1; no fixed one is
told more than information."""

from __future__ import annotations

import re

import pytest

from tests.seeds.answering import in_tensorflow_1, of_check, of_fit, of_function, of_model, of_training
from tests.seeds.answers import Answer
from tests.seeds.checks import CHECKS, CheckProgram
from tests.seeds.models import MODELS, ModelProgram
from tests.seeds.programs import GETS, PROGRAMS, Program
from tests.seeds.table import PAGE, page
from tests.seeds.trainings import TRAININGS, TrainingProgram
from tests.seeds.v1_programs import PROGRAMS as V1_PROGRAMS
from tests.seeds.v1_programs import V1Program


def name_of(program: object) -> str | None:
    return getattr(program, "name", None)


def assert_answered(
    answer: Answer, program: Program | ModelProgram | TrainingProgram | V1Program, compiled: Answer | None = None
) -> None:
    """As is true of the program, and in the same words as compiled."""
    assert (answer.statuses, answer.causes) == (program.statuses, program.causes), answer.text
    assert answer.healthy is (not program.causes)
    if compiled is not None:
        assert answer.text == compiled.text


@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_a_function_is_answered_as_it_stands(program: Program) -> None:
    compiled = of_function(program, eagerly=False)

    assert_answered(compiled, program)
    if program.eagerly:
        assert_answered(of_function(program, eagerly=True), program, compiled)


@pytest.mark.parametrize("program", [each for each in PROGRAMS if set(each.statuses) == {GETS}], ids=name_of)
def test_tensorflow_itself_gives_the_gradients_of_a_fixed_function(program: Program) -> None:
    assert of_function(program, eagerly=False).tensorflow == ", ".join(["a gradient"] * len(program.statuses))


@pytest.mark.parametrize("program", MODELS, ids=name_of)
def test_a_model_is_answered_as_it_stands(program: ModelProgram) -> None:
    compiled = of_model(program, eagerly=False)

    assert_answered(compiled, program)
    assert_answered(of_model(program, eagerly=True), program, compiled)


@pytest.mark.parametrize("program", [each for each in MODELS if each.is_fit], ids=name_of)
def test_a_model_is_answered_the_same_while_it_is_fit(program: ModelProgram) -> None:
    assert_answered(of_fit(program), program)


@pytest.mark.parametrize("eagerly", [False, True], ids=["compiled", "eagerly"])
@pytest.mark.parametrize("program", TRAININGS, ids=name_of)
def test_a_training_is_answered_as_it_stands(program: TrainingProgram, eagerly: bool) -> None:
    answer = of_training(program, eagerly)

    assert_answered(answer, program, of_training(program, eagerly=False))
    assert program.says in answer.text
    assert not (program.is_silent and answer.notes)


@pytest.mark.parametrize("program", CHECKS, ids=name_of)
def test_a_gradient_that_somebody_wrote_is_judged_as_it_stands(program: CheckProgram) -> None:
    answer = of_check(program)

    assert answer.statuses == program.verdicts
    assert answer.healthy is program.correct
    assert program.says in answer.text


@pytest.mark.parametrize("program", V1_PROGRAMS, ids=name_of)
def test_a_program_for_tensorflow_1_is_answered_as_it_stands(program: V1Program) -> None:
    assert_answered(in_tensorflow_1()[program.name], program)


def test_the_page_with_all_of_them_says_what_the_reports_say() -> None:
    """`python -m tests.seeds.table` writes it. What finite differences err by is not the same on every machine."""
    assert without_sizes(PAGE.read_text(encoding="utf-8")) == without_sizes(page())


def without_sizes(text: str) -> str:
    return re.sub(r"\d(\.\d+)?e[+-]\d+", "<size>", text)
