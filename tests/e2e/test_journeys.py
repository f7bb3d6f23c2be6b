"""What a person does to find, follow, compare and take home: whole journeys in a real browser."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree

from playwright.sync_api import Browser, Page, Route, expect

from tests.e2e.tab import KERNEL, LESS, THRESHOLD, Tab, open_tab, part_of
from tests.serve.processes import TensorBoard


def test_what_is_searched_for_is_listed_lit_and_gone_to(tab: Tab) -> None:
    tab.page.keyboard.press("/")
    field = tab.frame.get_by_role("combobox", name="Find by name")
    if not field.evaluate("field => field.matches(':focus')"):
        field.focus()

    tab.page.keyboard.type("sequence_mask less")

    hits = tab.frame.get_by_role("listbox", name="Search results").get_by_role("option")
    expect(hits).to_have_count(1)
    expect(part_of(tab, LESS)).to_have_attribute("data-state", "blocking op, on the highlighted path")
    tab.page.keyboard.press("Enter")
    expect(tab.details).to_contain_text(LESS)
    expect(hits).to_have_count(0)
    expect(part_of(tab, LESS)).to_have_attribute("data-state", "blocking op, selected")


def test_a_search_says_which_variables_get_no_gradient(tab: Tab) -> None:
    tab.frame.get_by_role("combobox", name="Find by name").fill("threshold")

    hits = tab.frame.get_by_role("listbox", name="Search results")
    expect(hits.get_by_role("option").filter(has_text=THRESHOLD).first).to_contain_text("disconnected")


def test_a_link_that_names_what_is_not_there_says_so(tab: Tab) -> None:
    board, _, _ = tab.page.url.partition("#")
    tab.page.goto("about:blank")
    tab.page.goto(f"{board}#gradflow&p.gradflow.run=gone%2Fgradflow&p.gradflow.select={LESS}")

    told = tab.frame.get_by_role("alert")
    expect(told).to_contain_text("no run \u201cgone/gradflow\u201d")
    expect(tab.details).to_have_count(0)
    told.get_by_role("button", name="Close").click()
    expect(told).to_have_count(0)

    tab.page.goto("about:blank")
    tab.page.goto(
        f"{board}#gradflow&p.gradflow.run=step_filter%2Fbroken%2Fgradflow&p.gradflow.select=gone&p.gradflow.step=303"
    )
    expect(told).to_have_text(
        re.compile(r"Step 303 is not recorded: step 304 is shown. \u201cgone\u201d is not in this graph.")
    )


def test_a_link_shows_another_person_the_same_and_back_takes_a_step_back(tab: Tab, browser: Browser) -> None:
    tab.show(tab.findings.first)
    tab.frame.get_by_role("tab", name="Heat map").click()
    part_of(tab, "sensors_1/hidden_1").get_by_role("button", name="Open").dispatch_event("click")
    expect(part_of(tab, "sensors_1/hidden_1")).to_have_attribute("data-kind", "open group")
    link = tab.page.url

    other = browser.new_page(viewport={"width": 1440, "height": 900})
    other.goto(link)
    seen = Tab(other)
    expect(part_of(seen, "sensors_1/hidden_1")).to_have_attribute("data-kind", "open group")
    expect(part_of(seen, LESS)).to_have_attribute("data-state", "blocking op, on the highlighted path, selected")
    expect(seen.frame.get_by_role("tab", name="Heat map")).to_have_attribute("aria-selected", "true")
    other.close()

    tab.page.go_back()
    expect(part_of(tab, "sensors_1/hidden_1")).to_have_attribute("data-kind", "closed group")
    tab.page.go_back()
    expect(tab.frame.get_by_role("tab", name="Heat map")).to_have_attribute("aria-selected", "false")
    tab.page.go_back()
    expect(part_of(tab, LESS)).to_have_attribute("data-state", "blocking op")
    tab.page.go_forward()
    expect(part_of(tab, LESS)).to_have_attribute("data-state", "blocking op, on the highlighted path, selected")


def test_the_heat_map_leads_to_a_variable_and_a_step(tab: Tab) -> None:
    tab.frame.get_by_role("tab", name="Heat map").click()
    cells = tab.frame.get_by_role("application")
    expect(tab.frame.get_by_text("5 variables, 40 steps")).to_be_visible()
    tab.frame.get_by_label("Order of the rows").select_option("by first problem")

    cells.press("ArrowLeft")
    expect(tab.frame.get_by_text(f"{THRESHOLD}, step 304: no gradient")).to_be_visible()
    tab.screenshot("heat")
    cells.press("Enter")

    expect(tab.slider).to_have_attribute("aria-valuetext", "step 304")
    expect(tab.details).to_contain_text(THRESHOLD)


def test_the_slider_is_marked_where_a_finding_begins_and_plays_to_the_end(tab: Tab) -> None:
    mark = tab.frame.get_by_role("button", name="error from step 0 on: nondiff comparison")
    mark.click()
    expect(tab.slider).to_have_attribute("aria-valuetext", "step 0")

    tab.frame.get_by_role("button", name="Play the steps").click()
    expect(tab.slider).not_to_have_attribute("aria-valuetext", "step 0")
    tab.frame.get_by_role("button", name="Stop").click()

    expect(tab.frame.get_by_role("button", name="Play the steps")).to_be_visible()


def test_a_repaired_run_beside_the_broken_one_says_what_was_repaired(tab: Tab) -> None:
    tab.choose_run("step_filter/fixed")
    tab.frame.get_by_label("Compare with").select_option(label="step_filter/broken")

    changes = tab.frame.get_by_role("region", name="Numbers")
    expect(changes).to_contain_text("1 variable is better, 1 finding is gone.")
    expect(changes).to_contain_text("both at step 312")
    expect(changes.get_by_role("region", name="Variables")).to_contain_text("disconnected → connected")
    changes.get_by_role("button", name="Open all changes").click()
    expect(part_of(tab, THRESHOLD)).to_have_attribute(
        "data-state", re.compile("^connected, .*better than in the other run")
    )
    tab.rest()
    tab.screenshot("changes")

    tab.frame.get_by_role("tab", name="Series").click()
    tab.frame.get_by_label("Add a variable").fill(KERNEL)
    tab.frame.get_by_label("Add a variable").press("Enter")
    legend = tab.frame.locator("gf-series .u-legend")
    expect(legend).to_contain_text(f"{KERNEL} (step_filter/broken)")
    expect(legend).to_contain_text("Step312")
    tab.slider.press("Home")
    expect(legend).to_contain_text("Step0")
    expect(legend).not_to_contain_text("--")
    tab.screenshot("series")


def test_the_picture_and_the_numbers_can_be_taken_home(tab: Tab, tmp_path: Path) -> None:
    def taken(entry: str) -> Path:
        tab.frame.get_by_label("Export").click()
        with tab.page.expect_download() as download:
            tab.frame.get_by_role("button", name=entry).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        return path

    svg = taken("Picture as SVG")
    assert svg.name == "step_filter-broken-step-312.svg"
    words = [element.text for element in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"threshold", "Less"} <= set(words)
    assert taken("Picture as PNG").read_bytes().startswith(b"\x89PNG")
    assert json.loads(taken("Findings and graph as JSON").read_text())["report"]["step"] == 312
    tab.frame.get_by_label("Export").click()
    expect(tab.frame.get_by_role("button", name="Copy the link")).to_be_visible()
    tab.frame.get_by_label("Export").click()
    assert 'id="gradflow-data"' in taken("This run as an HTML page").read_text()
    with taken("Variables as CSV").open(newline="") as file:
        statuses = {row["variable"]: row["status"] for row in csv.DictReader(file)}
    assert statuses[THRESHOLD] == "disconnected"
    assert statuses[KERNEL] == "connected"


def test_the_graph_does_not_wait_for_the_findings_and_leads_to_them_when_they_come(
    page: Page, board: TensorBoard
) -> None:
    held: list[Route] = []
    page.route("**/report?*", lambda route: held.append(route))
    tab = open_tab(page, board, runs=2)

    expect(tab.summary).to_contain_text("Analysing the gradient")
    expect(tab.frame.get_by_role("complementary", name="Findings")).to_contain_text("Analysing the gradient")
    assert "loss" in tab.items()
    tab.screenshot("judging")
    held[0].continue_()

    expect(tab.findings).to_have_count(1)
    tab.rest()
    assert "blocking op" in tab.items()[LESS].state


def test_whoever_looks_elsewhere_is_left_there_when_the_findings_come(page: Page, board: TensorBoard) -> None:
    held: list[Route] = []
    page.route("**/report?*", lambda route: held.append(route))
    tab = open_tab(page, board, runs=2)
    tab.frame.get_by_role("button", name="Close all groups").click()
    tab.rest()
    closed = set(tab.items())

    held[0].continue_()

    expect(tab.findings).to_have_count(1)
    tab.rest()
    assert set(tab.items()) == closed


def test_a_link_to_everything_open_shows_everything_open(tab: Tab, browser: Browser) -> None:
    before = len(tab.items())
    tab.frame.get_by_role("button", name="Open all groups").click()
    tab.rest()
    everything = set(tab.items())
    assert len(everything) > before

    other = browser.new_page(viewport={"width": 1440, "height": 900})
    other.goto(tab.page.url)
    seen = Tab(other)
    expect(seen.frame.get_by_role("list", name="Visible parts of the graph")).to_be_attached(timeout=30_000)
    seen.rest()
    assert set(seen.items()) == everything
    other.close()


def test_a_narrow_window_has_room_for_everything(page: Page, board: TensorBoard) -> None:
    page.set_viewport_size({"width": 800, "height": 700})
    tab = open_tab(page, board, runs=2)

    wide: int = tab.frame.locator("gf-app").evaluate(
        "app => Math.max(...[...app.shadowRoot.querySelectorAll('header *')].map(e => e.getBoundingClientRect().right))"
    )
    tab.screenshot("narrow")

    assert wide <= 800
