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


# How frontends say what theme they have. JupyterLab uses `color-scheme`, whatever the system prefers. VS Code does not:
# its styles hang on an attribute.
THEMES = {
    "jupyterlab": "<style>body[data-theme=dark] { color-scheme: dark; }</style>",
    "vscode": """<style>
        body { color: var(--vscode-foreground); }
        body[data-theme=light] { --vscode-foreground: #3b3b3b; background: #ffffff; }
        body[data-theme=dark] { --vscode-foreground: #cccccc; background: #1f1f1f; }
    </style>""",
    "colour functions": """<style>
        body[data-theme=light] { color: color-mix(in srgb, black 80%, white); }
        body[data-theme=dark] { color: color-mix(in srgb, black 20%, white); }
    </style>""",
}


@pytest.mark.parametrize("frontend", THEMES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_graph_is_as_dark_as_the_notebook(
    browser: Browser, output: str, tmp_path: Path, scheme: str, frontend: str
) -> None:
    """Also after the theme was changed, and in both of two cells that show the same."""
    (tmp_path / "lab.html").write_text(
        f'<!DOCTYPE html><meta charset="utf-8">{THEMES[frontend]}<body data-theme={scheme}>'
        f"<div>{output}</div><div>{output}</div>"
    )
    # "null": what the browser finds in the page, and not what a test says that the system prefers.
    page = browser.new_page(color_scheme="null")
    page.goto((tmp_path / "lab.html").as_uri())

    graphs = [page.locator("iframe").nth(number).content_frame for number in range(2)]
    for graph in graphs:
        shown(graph)
    assert [is_dark(graph) for graph in graphs] == [scheme == "dark"] * 2
    expect(page.locator("details[open]")).to_have_count(0)

    other = {"light": "dark", "dark": "light"}[scheme]
    page.evaluate("theme => { document.body.dataset.theme = theme; }", other)
    page.wait_for_timeout(200)
    assert [is_dark(graph) for graph in graphs] == [other == "dark"] * 2
    page.close()


def is_dark(graph: FrameLocator) -> bool:
    ground = graph.locator("body > *").first.evaluate("each => getComputedStyle(each).backgroundColor")
    channels = [int(part) for part in ground.removeprefix("rgb(").removesuffix(")").split(",")]
    return max(channels) < 80
