"""`tb-gradflow report --format markdown`, read by a parser of Markdown."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tb_gradflow.cli.main import main
from tb_gradflow.record.report import Evidence
from tb_gradflow.serve.formats import markdown
from tb_gradflow.serve.formats.batch import Batch, RunReport
from tb_gradflow.version import VERSION
from tests.serve.formats.reports import EDIT, HOSTILE, batch, finding, hostile, report
from tests.store.samples import write_log

PARSER = MarkdownIt("commonmark").enable("table")

EVIDENCE = Evidence("influence", "threshold", "loss", 0.1, None, "Moving `threshold` by 0.3 changes the loss by 0.1.")

# What a name could be meant to do: notify somebody, refer to an issue, be a link, an image, an element, a new block.
TRICKS = "@octocat #12 [a](b) ![a](b) <img src=x> <!-- &amp; `` ` ~~a~~ *a* __a__ http://a.b www.a.b 1. - | ||| \\"


def tokens(text: str) -> list[Token]:
    """Those of the blocks, and of the lines in them."""
    found = []
    for token in PARSER.parse(text):
        found += [token, *(token.children or ())]
    return found


def test_a_finding_has_everything_that_somebody_without_the_log_needs() -> None:
    known = replace(finding("nondiff_comparison", "threshold"), edit=EDIT, evidence=(EVIDENCE,), cost="It is soft.")

    text = markdown.render(batch(known))

    assert (
        text
        == f"""\
### `run1`, step 120

**A sentence.**

#### Error: `nondiff_comparison`

`less` only compares `threshold`.

`src/my model.py:17`

```python
mask = less(threshold)
```

op `step_filter/Less` (`Less`); for `threshold`

Tried:

- Moving `threshold` by 0.3 changes the loss by 0.1.

**Fix**: Write a soft mask:

```python
    mask = soft(threshold)
```

```diff
--- a/model.py
+++ b/model.py
@@ -17,2 +17,2 @@
-    mask = less(
-        threshold)
+    mask = "é" if x < 1 else
+        soft(threshold)
```

The edit has not been run: `tb-gradflow run --try-fixes PROGRAM` tries it, and so does \
`tb\\_gradflow.explain(..., try\\_fixes=True)` on a batch. It is soft.

Variables: 1 connected, 1 disconnected

| variable | status | gradient |
| --- | --- | --- |
| `threshold` | disconnected | no gradient |

tb-gradflow {VERSION}""".replace("\\_", "_")
    )


def test_of_several_runs_each_finding_is_told_once() -> None:
    broken = [RunReport(f"run{n}", f"run{n}", report(finding())) for n in range(5)]
    of = Batch([RunReport("well", "well", report()), *broken], unreadable={"cut|off": "damaged log"})

    text = markdown.render(of)

    assert text.startswith(
        "### 7 runs\n\n| run | state |\n| --- | --- |\n| `cut\\|off` | damaged log |\n| `run0`, step 120 |"
    )
    assert text.count("#### ") == 1
    assert "In `run0`, `run1`, `run2` and 2 other runs" in text


def test_a_table_is_short() -> None:
    names = tuple(f"v{n}" for n in range(14))

    text = markdown.render(batch(finding("x", *names), names=(*names, "well")))

    assert "Variables: 14 disconnected, 1 connected" in text
    assert text.count("| no gradient |") == 10
    assert "… and 4 more variables" in text
    assert "for `v0`, `v1`, `v2`, `v3`, `v4`, `v5` and 8 more" in text


def is_plain(text: str) -> bool:
    """Whether a document has only what the format itself writes: no link, no picture, no element."""
    ours = {"heading", "paragraph", "fence", "inline", "text", "code_inline", "strong", "list_item", "bullet_list"}
    ours |= {"table", "thead", "tbody", "tr", "th", "td"}
    kinds = {token.type.removesuffix("_open").removesuffix("_close") for token in tokens(text)}
    return kinds <= ours and not any(
        re.search(r"[@#]\w", token.content) for token in tokens(text) if token.type == "text"
    )


@pytest.mark.parametrize(
    "trick", [HOSTILE, TRICKS, *TRICKS.split(), f"`{TRICKS}`", "```\n# a", "    # a", "# a", "12) a"]
)
def test_no_name_is_markup(trick: str) -> None:
    bad = replace(finding("nondiff_comparison", trick), message=trick, fix=f"{trick}\n{trick}", cost=trick)
    bad = replace(bad, edit=replace(EDIT, file=trick, after=trick), evidence=(replace(EVIDENCE, text=trick),))

    of_one = markdown.render(batch(bad, name=trick, names=(trick, "kernel")))
    of_two = markdown.render(Batch((*batch(bad, name=trick).runs, *batch().runs), unreadable={trick: trick}))

    for text in (of_one, of_two):
        assert is_plain(text)
        headings = [token.tag for token in tokens(text) if token.type == "heading_open"]
        assert headings == ["h3", "h4"]


def test_no_address_in_a_sentence_becomes_a_link() -> None:
    """Also without brackets, where GitHub reads text as a link."""
    text = markdown.render(batch(replace(finding("x"), message="See https://a.b or www.a.b for tf.nn.relu.")))

    assert "See https\\://a.b or www\\.a.b for tf.nn.relu." in text


def test_hostile_reports_are_plain() -> None:
    assert is_plain(markdown.render(hostile()))


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Zl", "Zp")), min_size=1))
def test_any_sentence_and_any_name_reads_as_it_was_written(text: str) -> None:
    written = markdown.render(
        batch(replace(finding("x", text), message=f"Of {text.replace('`', '')}, it is."), names=(text,))
    )

    sentences = [token.children or [] for token in PARSER.parse(written) if token.type == "inline"]
    said = ["".join(part.content for part in parts).replace("\u200b", "") for parts in sentences]
    words = " ".join(text.split("\n"))
    assert f"Of {words.replace('`', '')}, it is." in said
    if text.strip():
        assert any(part.type == "code_inline" and part.content == words for parts in sentences for part in parts)
    assert is_plain(written)


def test_the_command_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "run")

    assert main(["report", str(tmp_path), "--format", "markdown", "--fail-on", "error"]) == 1

    out = capsys.readouterr().out
    assert out.startswith("### `run`, step 2\n\n**1 of 2 trainable variables gets no gradient")
    assert "| `step_filter/threshold` | disconnected | no gradient |" in out
