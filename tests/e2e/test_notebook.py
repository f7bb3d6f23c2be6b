"""The output of a notebook's cell as frontends show it that give it less than JupyterLab does."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FrameLocator, expect

import tb_gradflow
from tests.store.samples import write_log


@pytest.fixture
def output(tmp_path: Path) -> str:
    write_log(tmp_path / "run")
    return tb_gradflow.open_log(tmp_path / "run").report()._repr_html_()


def shown(frame: FrameLocator) -> None:
    expect(frame.get_by_role("list", name="Visible parts of the graph")).to_be_attached(timeout=30_000)


def test_the_graph_needs_nothing_that_a_frame_of_another_origin_forbids(
    browser: Browser, output: str, tmp_path: Path
) -> None:
    """Colab shows each output in such a frame."""
    (tmp_path / "colab.html").write_text(
        '<!DOCTYPE html><meta charset="utf-8"><iframe sandbox="allow-scripts" style="width:1200px;height:800px" '
        f'srcdoc="{html.escape(output)}"></iframe>'
    )
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.goto((tmp_path / "colab.html").as_uri())

    cell = page.frame_locator("iframe")
    graph = cell.frame_locator("iframe")
    shown(graph)
    graph.get_by_role("article").first.get_by_role("button", name="Show in the graph").click()

    expect(graph.locator('li[data-state*="selected"]').first).to_be_attached()
    expect(cell.get_by_text("ERROR  nondiff_comparison")).to_be_hidden()
    # So much fits into the frame of its own without scrolling inside of it.
    assert (cell.locator("iframe").bounding_box() or {"height": 0})["height"] >= 600
    assert wrong == []
    # The browser says on the console that such a frame may not write to the clipboard; there is another way.
    graph.get_by_role("button", name="Copy", exact=True).first.click()
    expect(graph.get_by_role("button", name="Copied").first).to_be_visible()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_graph_is_as_dark_as_the_notebook(browser: Browser, output: str, tmp_path: Path, scheme: str) -> None:
    """JupyterLab says so by `color-scheme`, whatever the system prefers."""
    (tmp_path / "lab.html").write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><body style="color-scheme: {scheme}">{output}'
    )
    # "null": what the browser finds in the page, and not what a test says that the system prefers.
    page = browser.new_page(color_scheme="null")
    page.goto((tmp_path / "lab.html").as_uri())

    graph = page.frame_locator("iframe")
    shown(graph)
    ground = graph.locator("body > *").first.evaluate("each => getComputedStyle(each).backgroundColor")

    channels = [int(part) for part in ground.removeprefix("rgb(").removesuffix(")").split(",")]
    assert (max(channels) < 80) == (scheme == "dark"), ground
    page.close()
