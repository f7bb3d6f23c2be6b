"""A finding's fix as code, in a real browser: read in its own lines, in both themes, and copied as a patch."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tb_gradflow import open_log
from tests.demo.training import Trained
from tests.e2e.tab import Tab, open_tab
from tests.serve.processes import REPOSITORY, TensorBoard


def edit_of(tab: Tab) -> Locator:
    return tab.findings.first.get_by_role("group", name="Edit of tb_gradflow/demo/step_filter.py, line 38")


def lines_high(lines: Locator) -> list[float]:
    """The height of each in lines of text."""
    heights = "all => all.map(e => e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight))"
    found: list[float] = lines.evaluate_all(heights)
    return found


def test_the_edit_says_what_goes_and_what_comes_without_the_indentation_of_both(tab: Tab) -> None:
    edit = edit_of(tab)

    expect(edit).to_contain_text("step_filter.py:38")
    assert (
        edit.locator("del").inner_text().rstrip()
        == "\u2212return tf.sequence_mask(threshold, self.width, dtype=tf.float32)"
    )
    assert edit.locator("ins").inner_text().startswith("+return tf.sigmoid((threshold[..., tf.newaxis]")
    # What both lines have is not marked.
    assert edit.locator("del mark").inner_text().startswith("sequence_mask")
    assert edit.locator("ins mark").inner_text().startswith("sigmoid")


@pytest.mark.parametrize("width", [1440, 900, 600])
def test_all_of_the_code_is_in_sight(tab: Tab, width: int) -> None:
    """Also of lines that are wider than the card: they go on below, further to the right than they begin."""
    tab.page.set_viewport_size({"width": width, "height": 900})
    if width < 900:
        tab.frame.get_by_role("button", name="Show or hide the findings").click()
    else:
        tab.findings.first.get_by_role("button", name="Show in the graph").click()

    blocks = tab.findings.first.locator("code.block")
    assert blocks.count() >= 3
    beyond: list[float] = blocks.evaluate_all(
        """all => all.map(code => {
            const range = document.createRange();
            range.selectNodeContents(code);
            const ends = [...range.getClientRects()].map(({right}) => right);
            return Math.max(...ends) - code.getBoundingClientRect().right;
        })"""
    )
    assert max(beyond) <= 1
    added = edit_of(tab).locator("ins")
    assert max(lines_high(added)) > 1.5
    starts: list[float] = added.first.evaluate(
        """line => {
            const range = document.createRange();
            range.selectNodeContents(line);
            return [...range.getClientRects()].filter(({width}) => width > 0).map(({left}) => left);
        }"""
    )
    assert starts[-1] > min(starts)


def test_the_code_is_in_colours_and_its_page_is_not_wider_for_it(tab: Tab) -> None:
    keyword = edit_of(tab).locator("del .keyword").first
    assert keyword.inner_text() == "return"

    colours: list[str] = keyword.evaluate("e => [getComputedStyle(e).color, getComputedStyle(e.parentElement).color]")
    assert colours[0] != colours[1]
    panel = tab.frame.locator("gf-findings")  # what scrolls; the edge that is drawn stands out of it
    assert panel.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_that_go_and_come_differ_from_each_other_and_from_the_card(
    browser: Browser, board: TensorBoard, theme: str
) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme=theme)  # type: ignore[arg-type]
    tab = open_tab(page, board, runs=2)
    tab.findings.first.get_by_role("button", name="Show in the graph").click()
    tab.screenshot(f"edit-{theme}")

    ground = "e => getComputedStyle(e).backgroundColor"
    grounds = {
        str(tab.findings.first.locator(part).first.evaluate(ground)) for part in ("del", "ins", "del mark", "ins mark")
    }
    assert len({*grounds, str(tab.findings.first.evaluate(ground))}) == 5
    page.close()


def test_what_is_copied_is_what_git_applies(tab: Tab, step_filter: Trained, tmp_path: Path) -> None:
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.findings.first.get_by_role("button", name="Copy patch").click()
    expect(tab.findings.first.get_by_role("button", name="Copied")).to_be_visible()
    patch: str = tab.page.evaluate("navigator.clipboard.readText()")

    source = REPOSITORY / "tb_gradflow" / "demo" / "step_filter.py"
    copy = tmp_path / "tb_gradflow" / "demo" / "step_filter.py"
    copy.parent.mkdir(parents=True)
    shutil.copy(source, copy)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch, text=True, check=True)

    [finding] = open_log(step_filter.logdir / "step_filter" / "broken").report().findings
    assert finding.edit is not None
    assert copy.read_text() == source.read_text().replace(finding.edit.before, finding.edit.after)
    assert copy.read_text() != source.read_text()
