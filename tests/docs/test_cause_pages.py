"""The pages of the causes say what is so today."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hatch_build
from tb_gradflow.analyse.causes.catalogue import CATALOGUE
from tests.docs.cause_pages import (
    PAGES,
    PICTURES,
    WITHOUT_PROGRAM,
    cases_of,
    page,
    reports,
    shown_first,
)
from tests.docs.pictures import identity_in, identity_of
from tests.serve.processes import environment

HOW = "run `python -m tests.docs.cause_pages`"

MORE = "## More examples"

SAMPLES = ("nondiff_rounding", "pow_fraction_at_zero", "output_not_used")
"""To run all programs takes minutes, and `tests/cases` does."""


def report_in(text: str) -> str:
    found = re.search(r"```text\n(.*?)\n```", text, re.DOTALL)
    return found[1] if found else ""


def test_there_is_a_page_for_each_cause_and_for_nothing_else() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == CATALOGUE.keys(), HOW


def test_each_cause_has_a_program_or_a_reason_for_having_none() -> None:
    assert CATALOGUE.keys() - cases_of().keys() == WITHOUT_PROGRAM.keys()


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_a_page_holds_the_meaning_the_program_and_the_repair_as_they_are(name: str) -> None:
    """Which others are of the kind may lag behind."""
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")

    made = page(CATALOGUE[name], shown_first(name, cases_of().get(name, [])), report_in(text))

    assert text.partition(MORE)[0].rstrip() == made.partition(MORE)[0].rstrip(), HOW


def test_a_page_holds_what_the_report_says() -> None:
    """But for the numbers of the variables, which are not the same on every machine."""
    cases = {name: shown_first(name, cases_of()[name])[0].name for name in SAMPLES}

    said = reports(list(cases.values()))

    for name, case in cases.items():
        written = report_in((PAGES / f"{name}.md").read_text(encoding="utf-8"))
        assert written.partition("Variables:")[0] == said[case].partition("Variables:")[0], HOW


@pytest.mark.parametrize("name", SAMPLES[:2])
def test_a_reader_who_runs_the_program_of_a_page_gets_its_report(tmp_path: Path, name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    program = re.search(r"```python\n(.*?)\n```", text, re.DOTALL)
    assert program is not None
    (tmp_path / "case.py").write_text(program[1], encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "case.py"], cwd=tmp_path, env=environment(tensorflow=True), capture_output=True, text=True
    )

    assert done.stdout.partition("Variables:")[0] == report_in(text).partition("Variables:")[0], done.stderr


@pytest.mark.parametrize("name", sorted(CATALOGUE.keys() - WITHOUT_PROGRAM.keys()))
def test_the_picture_on_a_page_is_of_the_program_and_of_what_is_found_in_it(name: str) -> None:
    report = report_in((PAGES / f"{name}.md").read_text(encoding="utf-8"))

    shown = identity_of(shown_first(name, cases_of()[name])[0].program, report)

    assert identity_in(PICTURES / f"{name}.png") == shown, f"{HOW} --pictures {name}"


def test_the_pictures_are_small_and_nothing_else_is_among_them() -> None:
    pictures = list(PICTURES.iterdir())

    assert {path.stem for path in pictures} == CATALOGUE.keys() - WITHOUT_PROGRAM.keys()
    assert max(path.stat().st_size for path in pictures) < 64_000
    # A card shows the edit of its finding, too, in colours.
    assert sum(path.stat().st_size for path in pictures) < 34_000 * len(pictures)


def test_the_tab_has_each_page_and_no_name_in_it_is_taken_for_html() -> None:
    program = "```python\nif a < b:\n    c = '</pre>'\n```"
    text = f"# `dead<relu>`\n\n**What it is**: `a < b`.\n\n{program}\n\n[All causes](../causes.md)\n"

    html = "\n".join(hatch_build.html_of(text))

    assert html.splitlines() == [
        "<h1><code>dead&lt;relu&gt;</code></h1>",
        "<p><b>What it is</b>: <code>a &lt; b</code>.</p>",
        "<pre><code>if a &lt; b:",
        "    c = &#x27;&lt;/pre&gt;&#x27;",
        "</code></pre>",
    ]
