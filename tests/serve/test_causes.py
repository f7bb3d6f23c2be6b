"""`tb-gradflow cause`: the words of the reports, explained in a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tb_gradflow.analyse.causes.catalogue import CATALOGUE
from tb_gradflow.cli.main import main
from tb_gradflow.errors import LogError
from tb_gradflow.serve.terminal import causes
from tb_gradflow.serve.terminal.text import Look
from tests.serve.processes import environment

PAGE = """\
# `dead_relu`

**What it is** (error): born at a `relu`, see [the list](../causes.md).

## A program that has it

A title: [`case`](../../case.py), made from
<https://example.org/1>.

```python
layer = "x" * 100  # a line of code that is longer than any terminal that this is read in, and is to be copied whole
```

![The picture](../pictures/causes/dead_relu.png)

## More examples

- [another](../../case.py)

[All causes](../causes.md)
"""


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "dead_relu.md").write_text(PAGE)
    (tmp_path / "log_zero.md").write_text("# `log_zero`\n\n**What it is** (error): born at a logarithm.\n")
    monkeypatch.setattr(causes, "PAGES", tmp_path)
    return tmp_path


def test_a_page_is_plain_text_without_what_is_not_here(pages: Path) -> None:
    assert "\n".join(causes.page_of("dead_relu", Look(width=60))).split("\n") == [
        "dead_relu",
        "",
        "What it is (error): born at a `relu`, see the list.",
        "",
        "A program that has it",
        "",
        "A title: `case`, made from https://example.org/1.",
        "",
        '    layer = "x" * 100  # a line of code that is longer than any terminal that this is read in, and is to be '
        "copied whole",
        "",
    ]


@pytest.mark.parametrize("name", ["dead relu", "Dead-ReLU", " dead_relu "])
def test_a_name_may_be_written_as_the_tab_writes_it(pages: Path, name: str) -> None:
    assert next(causes.page_of(name, Look())) == "dead_relu"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("relu", "did you mean dead_relu?"),
        ("log_zeros", "did you mean log_zero?"),
        ("xyz", "`tb-gradflow cause` lists them"),
        ("../dead_relu", "did you mean dead_relu?"),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(
    pages: Path, capsys: pytest.CaptureFixture[str], name: str, hint: str
) -> None:
    assert main(["cause", name]) == 2

    assert capsys.readouterr().err == f"tb-gradflow: there is no cause {name!r}: {hint}\n"


def test_pages_that_were_not_built_are_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "PAGES", tmp_path / "none")

    with pytest.raises(LogError, match="were not built"):
        list(causes.all_causes(Look()))


def test_every_cause_of_the_reports_is_listed_without_tensorflow() -> None:
    command = [sys.executable, "-m", "tb_gradflow.cli.main", "cause"]
    done = subprocess.run(command, env=environment(tensorflow=False), capture_output=True, text=True, check=False)

    listed = {line.split()[0] for line in done.stdout.splitlines() if not line.startswith(" ")}

    assert listed == set(CATALOGUE), done.stderr


def test_a_page_shows_the_program_and_the_repair(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cause", "nondiff_rounding"]) == 0

    shown = capsys.readouterr().out
    assert "    def build():" in shown
    assert "\nThe fix\n" in shown
    assert "    +" in shown
    assert ".png" not in shown
