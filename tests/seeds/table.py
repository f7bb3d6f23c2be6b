"""Writes docs/seeds.md: of each of the seeds' programs what TensorFlow says of it, and what the report says.

python -m tests.seeds.table
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.seeds.answering import in_tensorflow_1, of_check, of_function, of_model, of_training
from tests.seeds.answers import Answer
from tests.seeds.checks import CHECKS
from tests.seeds.models import MODELS
from tests.seeds.programs import PROGRAMS
from tests.seeds.trainings import TRAININGS

PAGE = Path(__file__).parents[2] / "docs" / "seeds.md"

_HEAD = """# The questions that started this project

Five questions from people whose gradient did not arrive, and every program in the questions and their answers, copied
as written, broken and fixed. A row starts with the number of its question. The report is the same for a compiled step
and an eager one (for a Keras model, with `run_eagerly`); a program whose report is still wrong eagerly is marked
"compiled". The last column is for `tf.compat.v1`, if the question has the program in that form: run in a session, or
only as a graph if the row says "not fed". Tests compare the reports with this page, which
`python -m tests.seeds.table` generates.

| program | TensorFlow says | the report says | in TensorFlow 1 |
|---|---|---|---|
"""

_NOTHING = "-"


def page() -> str:
    rows = sorted(_rows(), key=lambda cells: cells[0][0])
    return _HEAD + "".join(f"| {' | '.join(_cell(text) for text in cells)} |\n" for cells in rows)


def _rows() -> Iterator[tuple[str, str, str, str]]:
    in_1 = dict(in_tensorflow_1())
    answers = [
        *((each.name, of_function(each, eagerly=False), each.eagerly) for each in PROGRAMS),
        *((each.name, of_model(each, eagerly=False), True) for each in MODELS),
        *((each.name, of_training(each, eagerly=False), True) for each in TRAININGS),
    ]
    for name, answer, eagerly in answers:
        title = name if eagerly else f"{name} (compiled)"
        yield title, answer.tensorflow, answer.text, _in_1(in_1.pop(name, None), answer)
    for check in CHECKS:
        yield f"{check.name}: `check_gradients`", _NOTHING, of_check(check).text, _NOTHING
    for name, alone in in_1.items():
        yield name, _NOTHING, _NOTHING, _in_1(alone, None)


def _in_1(answer: Answer | None, other: Answer | None) -> str:
    """What TensorFlow 1 and the report say; where the program is in the file is all that may differ from what is `the
    same`."""
    if answer is None:
        return _NOTHING
    if other is not None and _without_places(answer.text) == _without_places(other.text):
        return "the same"
    return f"{answer.tensorflow}: {answer.text}"


def _without_places(text: str) -> str:
    return re.sub(r" \(\w+\.py:\d+\)", "", text)


def _cell(text: str) -> str:
    return text.replace("\n", "<br>").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
