"""The parts of the user's files that a log keeps for edits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tb_gradflow.record.report import Edit
from tb_gradflow.record.schema import Passage
from tb_gradflow.serve.terminal.patch import patch_of
from tb_gradflow.trace.source.passages import passages_of

PROGRAM = """import tensorflow as tf


def step(x):
    y = tf.floor(x)
    return tf.reduce_mean(y)
{after}"""


def passages(file: Path) -> tuple[Passage, ...]:
    return passages_of({str(file): [5]}, (), (), {str(file): "model.py"})


def test_a_passage_has_the_lines_after_it(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(PROGRAM.format(after="print(1)\n\nprint(2)\nprint(3)\n"))

    imports, step = passages(file)

    assert imports == Passage("model.py", 1, "import tensorflow as tf", ("", "", "def step(x):"))
    assert step == Passage("model.py", 4, "\n".join(PROGRAM.split("\n")[3:6]), ("print(1)", "", "print(2)"))


@pytest.mark.parametrize("after", ["", "\n", "print(1)\n", "\n\nclass Model:\n    pass\n"])
def test_git_applies_an_edit_of_the_last_line_whatever_comes_after(tmp_path: Path, after: str) -> None:
    file = tmp_path / "model.py"
    program = PROGRAM.format(after=after)
    file.write_text(program)
    fresh = "    return tf.reduce_sum(y)"
    edit = Edit("model.py", 6, 6, "    return tf.reduce_mean(y)", fresh)

    patch = patch_of(edit, passages(file))
    done = subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), capture_output=True, check=False)

    assert done.returncode == 0, done.stderr.decode() + patch
    assert file.read_text() == program.replace(edit.before, fresh)
