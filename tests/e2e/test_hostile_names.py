"""Markup, escapes and overlong names in a real browser: in the tab and in a saved page they are text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from tb_gradflow.cli.main import main
from tests.e2e.tab import Tab
from tests.hostile.mutations import SEEDS
from tests.hostile.names import write_hostile, write_renamed
from tests.serve.processes import tensorboard

# Through every shadow root: elements that only a name can have brought.
FOREIGN = """() => {
  const found = [], look = (root) => {
    for (const each of root.querySelectorAll("*")) {
      if (each.tagName === "IMG" && each.getAttribute("src") === "x") found.push(each.outerHTML);
      if (each.tagName === "SCRIPT" && each.textContent.includes("document.title='pwned'") && each.type === "") {
        found.push(each.outerHTML.slice(0, 200));
      }
      if (each.hasAttribute("onerror")) found.push(each.outerHTML);
      if (each.shadowRoot !== null) look(each.shadowRoot);
    }
  };
  look(document);
  return found;
}"""


LOGS = Path(__file__).parents[1] / "hostile" / "logs"


@pytest.fixture
def guarded(page: Page) -> Iterator[Page]:
    """A page in which no dialog opens, and nothing is asked of anybody but the server."""
    dialogs: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    yield page
    assert dialogs == []
    assert page.title() != "pwned"
    for frame in page.frames:
        assert frame.evaluate("document.title") != "pwned"
        assert frame.evaluate(FOREIGN) == []


@pytest.mark.parametrize("loader", ["true", "false"], ids=["rust", "python"])
def test_in_the_tab_every_name_is_text(tmp_path: Path, guarded: Page, loader: str) -> None:
    write_hostile(tmp_path)
    with tensorboard(f"--logdir={tmp_path}", f"--load_fast={loader}") as board:
        board.wait_for_runs(1)
        guarded.goto(f"{board.url}#gradflow")
        tab = Tab(guarded)
        expect(tab.summary).to_contain_text("1 of 2 trainable variables")
        expect(tab.findings.first).to_contain_text("<img src=x")
        for name in ("Heat map", "Series", "Variables"):
            tab.frame.get_by_role("tab", name=name).click()
        expect(tab.frame.get_by_role("tabpanel")).to_contain_text("<img src=x")
        tab.screenshot(f"hostile-names-{loader}")
        cause = board.get("data/plugin/gradflow/static/causes/nondiff_comparison.html")
        others = [board.get(f"data/plugin/gradflow/{route}") for route in ("runs", "static/index.js")]

    # Stricter than what TensorBoard sends with every document of a plugin's; anything else is no document.
    policy = dict(each.split(" ", 1) for each in cause.headers["Content-Security-Policy"].split(";"))
    assert policy == {
        "default-src": "'self'",
        "img-src": "'self' data: blob:",
        "object-src": "'none'",
        "style-src": "'self' 'unsafe-inline'",
        "script-src": "'self'",
    }
    assert not any(each.headers["Content-Type"].startswith("text/html") for each in others)
    assert all(each.headers["X-Content-Type-Options"] == "nosniff" for each in (cause, *others))


def test_in_the_tab_every_string_of_every_record_is_text(tmp_path: Path, guarded: Page) -> None:
    for of in {path.parents[1] for path in SEEDS if path.is_relative_to(LOGS)}:
        write_renamed(tmp_path / of.name, of)
    with tensorboard(f"--logdir={tmp_path}") as board:
        board.wait_for_runs(2)
        guarded.goto(f"{board.url}#gradflow")
        tab = Tab(guarded)
        for run in ("explained", "trained"):
            tab.runs.select_option(label=run)
            for name in ("Graph", "Heat map", "Series", "Variables"):
                each = tab.frame.get_by_role("tab", name=name)
                if each.count():
                    each.click()
                expect(tab.findings.first).to_contain_text("<img src=x")
            if run == "explained":
                bar = tab.frame.get_by_role("group", name="Terms of the loss")
                for button in bar.get_by_role("button").all():
                    button.click()
                expect(bar).to_contain_text("<img src=x")
            tab.findings.get_by_role("button", name="Show in the graph").first.click()
            expect(tab.details).to_contain_text("<img src=x")
            tab.screenshot(f"hostile-strings-{run}")


def test_in_a_saved_page_every_name_is_text(tmp_path: Path, guarded: Page, browser: Browser) -> None:
    write_hostile(tmp_path)
    path = tmp_path / "page.html"
    assert main(["report", str(tmp_path), "--html", str(path)]) == 0

    guarded.goto(path.as_uri())

    tab = guarded.locator("gf-app")
    expect(tab.get_by_text("1 of 2 trainable variables").first).to_be_visible()
    expect(tab.get_by_text("<img src=x").first).to_be_attached()
