"""The list of all runs of a log directory: which are broken, what they share, and from there to one or two of them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import tensorflow as tf
from playwright.sync_api import Browser, Locator, expect
from tensorboard.plugins.hparams import api as hp

from tests.demo.training import Trained
from tests.e2e.tab import LESS, Tab, open_tab, part_of
from tests.serve.processes import TensorBoard, tensorboard

EACH = 6
"""Runs that are broken, and runs that are not."""


@pytest.fixture(scope="module")
def board(step_filter: Trained, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TensorBoard]:
    """A sweep: broken runs with the large learning rates, fixed ones with the small."""
    logdir: Path = tmp_path_factory.mktemp("sweep")
    for number in range(EACH):
        for kind, rate in (("broken", 0.1 * (1 + number)), ("fixed", 0.01 / (1 + number))):
            run = logdir / f"{kind}{number}"
            shutil.copytree(step_filter.logdir / "step_filter" / kind, run)
            with tf.summary.create_file_writer(str(run)).as_default():
                hp.hparams({"lr": round(rate, 6), "batch": 32, "units": 8 * (1 + number % 2)})
    with tensorboard(f"--logdir={logdir}") as running:
        yield running


@pytest.fixture
def tab(page: object, board: TensorBoard) -> Tab:
    return open_tab(page, board, runs=2 * EACH)  # type: ignore[arg-type]  # the fixture of conftest


@pytest.fixture
def table(tab: Tab) -> Locator:
    tab.frame.get_by_role("button", name=re.compile(r"^All 12 runs")).click()
    found = tab.frame.get_by_role("table", name="All runs")
    # Until all of them have been judged.
    expect(tab.frame.get_by_role("button", name=re.compile(r"healthy\s+6"))).to_be_visible()
    expect(tab.frame.get_by_role("list", name="What the broken runs have in common")).to_be_visible()
    return found


def rows(table: Locator) -> list[list[str]]:
    lines = [row.get_by_role("cell").all_inner_texts() for row in table.get_by_role("row").all()]
    return [cells for cells in lines if cells]


def test_the_worst_come_first_with_what_they_share(tab: Tab, table: Locator) -> None:
    expect(tab.frame.get_by_role("list", name="What the broken runs have in common")).to_have_text(
        "All 6 broken runs have lr ≥ 0.1; none of the 6 healthy ones does."
    )
    found = rows(table)
    tab.screenshot("all-runs")

    assert [cells[1].endswith("error") for cells in found] == [True] * EACH + [False] * EACH
    assert [cells[2].startswith("broken") for cells in found] == [True] * EACH + [False] * EACH
    headings = table.get_by_role("columnheader").all_inner_texts()
    # What all runs have alike says nothing, and has no column.
    assert headings[1:] == ["Health", "Run", "lr", "units", "Worst finding", "Since step", "Loss", "Last step"]
    [broken0] = [cells for cells in found if cells[2] == "broken0"]
    assert (broken0[3], broken0[4]) == ("0.1", "8")
    assert broken0[5] == "nondiff comparison step_filter.py:38"


def test_it_is_sorted_by_a_hyperparameter(tab: Tab, table: Locator) -> None:
    table.get_by_role("button", name="lr").click()
    expect(table.get_by_role("columnheader", name="lr")).to_have_attribute("aria-sort", "descending")

    found = [float(cells[3]) for cells in rows(table)]

    assert found == sorted(found, reverse=True)
    assert found[0] == 0.6


def test_it_is_filtered_and_searched(tab: Tab, table: Locator) -> None:
    tab.frame.get_by_role("button", name=re.compile(r"healthy\s+6")).click()
    expect(tab.frame.get_by_text("6 of 12 runs")).to_be_visible()
    assert all(cells[2].startswith("fixed") for cells in rows(table))

    tab.frame.get_by_role("searchbox", name="Find runs").fill("units=16")
    expect(tab.frame.get_by_text("3 of 12 runs")).to_be_visible()
    tab.frame.get_by_role("searchbox", name="Find runs").fill("no such run")
    expect(tab.frame.get_by_text("No run matches.")).to_be_visible()


def test_a_row_opens_its_run_and_the_key_leads_back(tab: Tab, table: Locator) -> None:
    expect(tab.page).to_have_url(re.compile(r"p\.gradflow\.all=1"))
    table.get_by_role("row").filter(has_text="fixed3").get_by_role("cell").nth(2).click()

    expect(tab.summary).to_contain_text("Healthy")
    expect(tab.runs).to_have_value("fixed3/gradflow")
    tab.rest()
    tab.frame.locator("gf-app").press("a")

    expect(table.get_by_role("row").filter(has_text="fixed3")).to_have_attribute("aria-current", "true")


def test_a_selection_is_in_view_again_after_a_look_at_all_runs(tab: Tab) -> None:
    tab.show(tab.findings.first)
    for _ in range(2):
        tab.frame.locator("gf-app").press("a")
        expect(tab.frame.get_by_role("table", name="All runs")).to_be_visible()
        tab.frame.locator("gf-app").press("a")
        expect(part_of(tab, LESS)).to_have_attribute("data-state", re.compile("selected"))
        tab.rest()


def test_two_are_compared(tab: Tab, table: Locator) -> None:
    for name in ("broken1", "fixed1"):
        table.get_by_role("checkbox", name=f"Compare {name}").check()
    tab.frame.get_by_role("button", name="Compare these two").click()

    expect(tab.frame.get_by_role("tab", name="Changes")).to_have_attribute("aria-selected", "true")
    expect(tab.frame.get_by_role("tabpanel", name="Changes")).to_contain_text("threshold")


@pytest.mark.parametrize("width", [1440, 900])
def test_nothing_in_it_is_out_of_reach(browser: Browser, board: TensorBoard, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme="dark")
    tab = open_tab(page, board, runs=2 * EACH)
    tab.frame.get_by_role("button", name=re.compile(r"^All 12 runs")).click()
    expect(tab.frame.get_by_role("list", name="What the broken runs have in common")).to_be_visible()
    tab.screenshot(f"all-runs-{width}-dark")

    last = tab.frame.get_by_role("columnheader", name="Last step")
    last.scroll_into_view_if_needed()
    box = last.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= width + 1
    # The cells stand under their headings.
    cell = tab.frame.get_by_role("table", name="All runs").get_by_role("row").nth(1).get_by_role("cell").last
    under = cell.bounding_box()
    assert under is not None
    assert (round(under["x"]), round(under["width"])) == (round(box["x"]), round(box["width"]))
    page.close()
