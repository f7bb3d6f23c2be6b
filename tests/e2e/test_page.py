"""The page that needs no server: opened from a file, with the network off, and inside a notebook."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

import tb_gradflow
from tb_gradflow.cli.main import main
from tb_gradflow.record.schema import Source
from tb_gradflow.version import VERSION
from tests.demo.training import Trained
from tests.e2e.tab import KERNEL, LESS, THRESHOLD, Tab
from tests.e2e.test_running import HOSTILE, with_hostile_names
from tests.store.samples import open_writer, step, trace

Opens = Callable[..., Tab]

ENDS_A_SCRIPT = "</script><script>window.hacked=1</script><!--<script>"


@pytest.fixture
def opens(browser: Browser) -> Iterator[Opens]:
    """Opens a file in a browser without a network. Whatever the page asks for or complains of fails the test."""
    context = browser.new_context(offline=True, viewport={"width": 1440, "height": 900})
    wrong: list[str] = []

    def open_file(path: Path, in_frame: bool = False) -> Tab:
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: wrong.append(request.url) if not is_its_own(request.url, path) else None)
        page.goto(path.as_uri())
        return Opened(page, page.frame_locator("iframe") if in_frame else page)

    yield open_file
    context.close()
    assert wrong == []


def is_its_own(url: str, path: Path) -> bool:
    return url.split("#")[0] == path.as_uri() or url.startswith(("data:", "blob:", "about:"))


class Opened(Tab):
    """The same viewer, in a page or a frame of its own."""

    def __init__(self, page: Page, frame: Page | FrameLocator) -> None:
        self.page = page
        self.frame = frame
        expect(self.frame.get_by_role("list", name="Visible parts of the graph")).to_be_attached(timeout=30_000)


def offers_a_link(tab: Tab) -> bool:
    """Whether the menu has an entry for an address; here it would lead nobody anywhere."""
    tab.frame.get_by_label("Export").click()
    expect(tab.frame.get_by_role("button", name="Variables as CSV")).to_be_visible()
    return tab.frame.get_by_role("button", name="Copy the link").is_visible()


def test_a_page_from_a_file_shows_what_the_tab_shows(step_filter: Trained, tmp_path: Path, opens: Opens) -> None:
    file = tmp_path / "page.html"
    assert main(["report", str(step_filter.logdir), "--html", str(file)]) == 0

    tab = opens(file)
    tab.rest()

    expect(tab.summary.first).to_contain_text("1 of 5 trainable variables gets no gradient")
    expect(tab.frame.get_by_text(f"Made by tb-gradflow {VERSION}.")).to_be_visible()
    tab.show(tab.findings.first)
    assert tab.items()[LESS].state == "blocking op, on the highlighted path, selected"
    assert tab.rows()[THRESHOLD].status == "disconnected"
    tab.screenshot("page")
    assert not offers_a_link(tab)


def test_slider_heat_map_series_and_comparison_work_without_a_server(
    step_filter: Trained, tmp_path: Path, opens: Opens
) -> None:
    file = tmp_path / "page.html"
    assert main(["report", str(step_filter.logdir), "--html", str(file)]) == 0
    tab = opens(file)

    tab.slider.press("Home")
    expect(tab.slider).to_have_attribute("aria-valuetext", "step 0")
    tab.frame.get_by_role("tab", name="Heat map").click()
    expect(tab.frame.get_by_text("5 variables, 40 steps")).to_be_visible()
    tab.frame.get_by_label("Order of the rows").select_option("by first problem")
    tab.frame.get_by_role("application").press("ArrowRight")
    expect(tab.frame.get_by_text(f"{THRESHOLD}, step 8: no gradient (None)")).to_be_visible()

    tab.choose_run("step_filter/fixed")
    tab.frame.get_by_label("Compare with").select_option(label="step_filter/broken")
    expect(tab.frame.get_by_role("region", name="Numbers")).to_contain_text("1 variable is better, 1 finding is gone.")
    tab.frame.get_by_role("tab", name="Series").click()
    tab.frame.get_by_label("Add a variable").fill(KERNEL)
    tab.frame.get_by_label("Add a variable").press("Enter")
    expect(tab.frame.locator("gf-series .u-legend")).to_contain_text(KERNEL)


def test_the_page_draws_the_numbers_of_the_log(step_filter: Trained, tmp_path: Path, opens: Opens) -> None:
    log = step_filter.log("fixed")
    at = log.steps[3]
    log.report(at).save_html(tmp_path / "page.html")

    tab = opens(tmp_path / "page.html")

    expect(tab.slider).to_have_attribute("aria-valuetext", f"step {at}")
    norm = log.history(KERNEL)["norm"][3]
    shown = float(tab.rows()[KERNEL].gradient_norm.replace("\u2212", "-"))
    assert shown == pytest.approx(norm, rel=5e-3)


def test_what_explain_found_has_a_page_too(step_filter: Trained, tmp_path: Path, opens: Opens) -> None:
    from tb_gradflow.demo import step_filter as program

    signals, answers = program.make_data(8)
    tb_gradflow.explain(step_filter.models["broken"], signals, answers).save_html(tmp_path / "page.html")

    tab = opens(tmp_path / "page.html")

    tab.show(tab.findings.first)
    assert tab.items()[LESS].kind == "op"


def test_a_notebook_shows_the_graph_and_folds_the_text_away(step_filter: Trained, tmp_path: Path, opens: Opens) -> None:
    report = step_filter.report("broken")
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{report._repr_html_()}")

    tab = opens(tmp_path / "notebook.html", in_frame=True)

    tab.show(tab.findings.first)
    expect(tab.page.get_by_text("ERROR  nondiff_comparison")).to_be_hidden()
    tab.screenshot("notebook")
    assert not offers_a_link(tab)


def test_where_scripts_are_not_trusted_the_text_is_there(
    step_filter: Trained, tmp_path: Path, browser: Browser
) -> None:
    report = step_filter.report("broken")
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><body>{report._repr_html_()}")
    report.save_html(tmp_path / "page.html")
    page = browser.new_page(java_script_enabled=False)

    page.goto((tmp_path / "notebook.html").as_uri())
    expect(page.locator("details").get_by_text("ERROR  nondiff_comparison")).to_be_visible()

    page.goto((tmp_path / "page.html").as_uri())
    expect(page.get_by_text("ERROR  nondiff_comparison")).to_be_visible()
    page.close()


@pytest.mark.parametrize("name", [HOSTILE, ENDS_A_SCRIPT])
def test_no_name_can_break_out_of_the_page(tmp_path: Path, opens: Opens, name: str) -> None:
    hostile = with_hostile_names(trace(step_filter=f"{name}/threshold"))
    line = Source(f"{name}.py", 17, name, f"mask = {name}")
    with open_writer(tmp_path / "run") as writer:
        writer.write_trace(dataclasses.replace(hostile, sources=(line,)))
        writer.write_step(step(0))
    report = tb_gradflow.open_log(tmp_path / "run").report()
    report.run = name
    report.save_html(tmp_path / "page.html")

    tab = opens(tmp_path / "page.html")

    expect(tab.findings.first).to_contain_text(name)
    assert f"{name}/threshold" in tab.rows()
    assert tab.frame.locator("img").count() == 0
    assert tab.page.evaluate("window.hacked") is None


def test_steps_that_were_left_out_are_told(tmp_path: Path, opens: Opens) -> None:
    with open_writer(tmp_path / "run") as writer:
        writer.write_trace(trace())
        for number in range(450):
            writer.write_step(step(number))
    tb_gradflow.open_log(tmp_path / "run").report().save_html(tmp_path / "page.html")

    tab = opens(tmp_path / "page.html")

    expect(tab.frame.get_by_text("It contains 400 of 450 recorded steps of run")).to_be_visible()
