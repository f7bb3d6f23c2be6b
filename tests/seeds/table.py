"""Writes docs/seeds.md: of each of the seeds' programs what TensorFlow says of it, and what the report says.

python -m tests.seeds.table
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import tb_gradflow
from tests.seeds.programs import PROGRAMS, Program

PAGE = Path(__file__).parents[2] / "docs" / "seeds.md"

_HEAD = """# The questions that this was made from

Five questions of people whose gradient did not arrive, and every program in them, typed in as it stands: their own, and
those of the answers. The number is the question's. What is said is the same compiled and with
`tf.config.run_functions_eagerly(True)`; tests hold it to that, and this page too. Made by
`python -m tests.seeds.table`.

| program | TensorFlow says | the report says |
|---|---|---|
"""


def page() -> str:
    return _HEAD + "".join(_row(program) for program in PROGRAMS)


def _row(program: Program) -> str:
    function, asked = program.build()
    report = tb_gradflow.explain(function, variables=asked)
    told = [f"{finding.message} *{finding.fix}*" for finding in report.findings] or [report.diagnosis.summary]
    cells = [program.name, _tape_says(program), " ".join(told).replace("|", "\\|").replace("\n", " ")]
    return f"| {' | '.join(cells)} |\n"


def _tape_says(program: Program) -> str:
    function, asked = program.build()
    with tf.GradientTape() as tape:
        tape.watch([each for each in asked if each.dtype.is_floating])
        result = function()
    return ", ".join(_said(each) for each in tape.gradient(result, asked))


def _said(gradient: Any) -> str:
    if gradient is None:
        return "`None`"
    values = tf.convert_to_tensor(gradient).numpy()
    if not np.isfinite(values).all():
        return "NaN"
    return "a gradient" if np.any(values) else "zeros"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
