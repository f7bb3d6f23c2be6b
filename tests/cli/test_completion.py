"""The script of `tb-gradflow completion`, in bash, which calls it as it does when Tab is pressed."""

from __future__ import annotations

import subprocess

import pytest

from tb_gradflow.cli.completion import script
from tb_gradflow.cli.main import make_parser

# The words so far are the arguments; the last one is being completed.
_TAB = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tb_gradflow; printf "%s\\n" "${COMPREPLY[@]}"'


def completed(*words: str) -> list[str]:
    given = ["bash", "-c", script(make_parser()) + _TAB, "bash", "tb-gradflow", *words]
    return subprocess.run(given, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rep"], ["report"]),
        (["report", "--fo"], ["--format"]),
        (["report", "logs", "--format", "s"], ["sarif"]),
        (["run", "--tensors", ""], ["all", "layers", "variables"]),
        (["completion", ""], ["bash", "zsh"]),
        (["report", "lo"], []),
    ],
    ids=" ".join,
)
def test_a_word_is_completed(words: list[str], expected: list[str]) -> None:
    assert completed(*words) == expected


def test_every_command_is_offered() -> None:
    assert {"run", "report", "view", "completion", "--help"} <= set(completed(""))
