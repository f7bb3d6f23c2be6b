"""The edit of a finding as a diff that git takes, and what it did as a sentence."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tb_gradflow.record.codec import encode
from tb_gradflow.record.report import Alternative, Edit, Tried, VariableNorm
from tb_gradflow.record.schema import Passage, Trained
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.serve.terminal.patch import patch_of, tried_in_words
from tests.serve.test_report import diagnosis, finding

LINES = [f"line {number}" for number in range(1, 21)]
SHARED = Path(__file__).parent / "patches.json"
"""What the page's own module is tested by as well (frontend/tests/patch.test.ts)."""


def edit(line: int, end_line: int, after: str, file: str = "pkg/model.py") -> Edit:
    return Edit(file, line, end_line, "\n".join(LINES[line - 1 : end_line]), after)


@pytest.mark.parametrize(
    ("line", "end_line", "after"),
    [
        (10, 10, "new"),
        (10, 12, "one\ntwo"),
        (1, 1, "first"),
        (5, 5, "a\nb\nc"),
        (10, 11, ""),
        (9, 12, "line 9\nnew\nline 10\nother"),
    ],
)
@pytest.mark.parametrize("file", ["pkg/model.py", "my pkg/a model.py", 'quo"ted/back\\slash.py', "größe.py"])
def test_git_applies_it(tmp_path: Path, line: int, end_line: int, after: str, file: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("\n".join(LINES) + "\n", encoding="utf-8")
    whole = Passage(file, 1, "\n".join(LINES))

    patch = patch_of(edit(line, end_line, after, file), [whole])
    done = subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), capture_output=True, check=False)

    assert done.returncode == 0, done.stderr.decode() + patch
    expected = [*LINES[: line - 1], *(after.split("\n") if after else []), *LINES[end_line:]]
    assert (tmp_path / file).read_text(encoding="utf-8").splitlines() == expected


def test_git_applies_an_edit_of_the_last_lines_of_a_statement(tmp_path: Path) -> None:
    """Git takes a patch that ends in a changed line for one of the end of the file."""
    (tmp_path / "model.py").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    statement = Passage("model.py", 8, "\n".join(LINES[7:12]), after=tuple(LINES[12:15]))

    patch = patch_of(edit(12, 12, "new", "model.py"), [statement])
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), check=True)

    assert (tmp_path / "model.py").read_text(encoding="utf-8").splitlines() == [*LINES[:11], "new", *LINES[12:]]


def test_lines_around_come_from_the_passage_that_still_reads_so() -> None:
    passages = [
        Passage("other.py", 1, "\n".join(LINES)),
        Passage("pkg/model.py", 1, "something\nelse"),
        Passage("pkg/model.py", 9, "\n".join(LINES[8:11])),
    ]

    assert patch_of(edit(10, 10, "new"), passages) == (
        "--- a/pkg/model.py\n+++ b/pkg/model.py\n@@ -9,3 +9,3 @@\n line 9\n-line 10\n+new\n line 11\n"
    )
    assert "@@ -10,1 +10,1 @@\n-line 10\n+new\n" in patch_of(edit(10, 10, "new"), passages[:2])


TRIED = Tried(True, (0.693, 0.694), (VariableNorm("threshold", 0.021),))
TRAINED = replace(TRIED, trained=Trained(20, (0.694, 0.402), (0.693, 0.693)), keeps=("forward", "checkpoint"))


@pytest.mark.parametrize(
    ("tried", "said"),
    [
        (TRIED, "`threshold` now gets a gradient of norm 0.021; the loss goes from 0.693 to 0.694."),
        (replace(TRIED, loss=(None, 0.5)), "norm 0.021; the loss is now 0.5."),
        (replace(TRIED, gradient_norm=(VariableNorm("Variable", 0.5, "w"),)), "`w` now gets a gradient of norm 0.5;"),
        (
            replace(TRIED, works=False, loss=(0.5, None), gradient_norm=()),
            "Tried on this batch, but it does not work: no variable gets a gradient; the loss is not finite.",
        ),
        (
            replace(TRIED, gradient_norm=tuple(VariableNorm(f"v{number}", 1.0) for number in range(5))),
            "`v2` now gets a gradient of norm 1; so do 2 more; the loss goes",
        ),
        (
            TRAINED,
            " 0.693 to 0.694. Trained for 20 steps with it: loss 0.694 to 0.402; without it 0.693 to 0.693. It keeps "
            "the forward values and the checkpoint.",
        ),
        (
            replace(TRIED, trained=Trained(20, (0.694, None), (None, None)), keeps=("forward", "shape", "checkpoint")),
            "with it: loss 0.694 to not finite. It keeps the forward values, the shapes and the checkpoint.",
        ),
        (
            replace(TRIED, not_trained="It was not trained: the step runs eagerly.", keeps=("shape",)),
            "It was not trained: the step runs eagerly. It keeps the shapes.",
        ),
    ],
)
def test_what_it_did_is_a_sentence(tried: Tried, said: str) -> None:
    assert said in tried_in_words(tried)


def test_the_report_shows_the_edit_as_it_is_to_be_copied() -> None:
    long = "x = " + "a_name_that_is_long + " * 12 + "1"
    with_edit = replace(finding(), edit=Edit("model.py", 17, 17, "    mask = less(x)", f"    {long}"), tried=TRIED)

    text = Report(diagnosis(with_edit)).text()

    assert "  edit --- a/model.py\n       +++ b/model.py\n       @@ -17,1 +17,1 @@\n" in text
    assert "       -    mask = less(x)\n" in text
    assert f"       +    {long}\n" in text
    assert tried_in_words(TRIED) in " ".join(text.split())


def test_the_report_says_what_each_edit_costs_and_which_was_not_run() -> None:
    first, other = edit(17, 17, "    mask = soft(x)"), edit(17, 17, "    mask = through(x)")
    alternatives = (Alternative(other, "The gradient is that of the identity."),)
    with_edits = replace(finding(), edit=first, cost="No longer exactly 0 or 1.", alternatives=alternatives)

    text = " ".join(Report(diagnosis(with_edits)).text().split())

    assert "try_fixes=True)` on a batch. No longer exactly 0 or 1. or --- a/" in text
    assert "+ mask = through(x) The gradient is that of the identity." in text


def test_the_page_is_tested_by_what_is_said_here() -> None:
    passage = Passage("pkg/model.py", 8, "\n".join(LINES[7:14]), after=tuple(LINES[14:17]))
    edits = (
        edit(10, 11, "new"),
        edit(13, 13, "near the end"),
        edit(14, 14, "last"),
        edit(9, 9, ""),
        edit(9, 12, "line 9\nnew\nline 10\nline 11\nother"),
        edit(3, 3, "x", "a b.py"),
        edit(3, 3, "x", 'q".py'),
    )
    failed = replace(TRIED, works=False, loss=(None, None), gradient_norm=())
    began = replace(TRIED, step=12)
    same = replace(TRIED, loss=(1.6831, 1.6829))
    alone = replace(TRIED, trained=Trained(20, (0.5, None), (None, None)), keeps=("forward", "shape", "checkpoint"))
    untrained = replace(TRIED, not_trained="It was not trained: it calls Python.", keeps=("shape",))
    tries = [TRIED, failed, replace(TRIED, loss=(None, 2.0)), replace(TRIED, with_others=True), began, same]
    tries += [TRAINED, untrained, alone, replace(TRIED, gradient_norm=(VariableNorm("Variable", 0.5, "w"),))]

    known = {
        "patches": [
            {"edit": encode(each), "passages": [encode(passage)], "patch": patch_of(each, [passage])} for each in edits
        ],
        "sentences": [{"tried": encode(each), "said": tried_in_words(each)} for each in tries],
    }

    assert json.loads(SHARED.read_text(encoding="utf-8")) == known
