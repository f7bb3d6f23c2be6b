"""The panes around the graph are drawn to a size, with the pointer or the keys, and keep it."""

from __future__ import annotations

from playwright.sync_api import Browser, Locator, expect

from tests.e2e.tab import Tab, open_tab
from tests.serve.processes import TensorBoard

NO_STORAGE = """
    Object.defineProperty(window, "localStorage", {get() { throw new DOMException("denied", "SecurityError"); }});
"""


def edge(tab: Tab, name: str) -> Locator:
    return tab.frame.get_by_role("separator", name=name)


def width(panel: Locator) -> float:
    box = panel.bounding_box()
    assert box is not None
    return box["width"]


def findings(tab: Tab) -> Locator:
    return tab.frame.get_by_role("complementary", name="Findings")


def draw(tab: Tab, handle: Locator, by: float) -> None:
    box = handle.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x + by / 2, y, steps=3)
    tab.page.mouse.move(x + by, y, steps=3)
    tab.page.mouse.up()


def test_the_findings_are_drawn_wider_and_stay_so(tab: Tab) -> None:
    before = width(findings(tab))

    draw(tab, edge(tab, "Width of the findings"), 150)

    assert abs(width(findings(tab)) - before - 150) < 6
    graph = tab.frame.locator("canvas[role=img]").bounding_box()
    panel = findings(tab).bounding_box()
    assert graph is not None
    assert panel is not None
    assert graph["x"] >= panel["x"] + panel["width"] - 1
    drawn = width(findings(tab))
    tab.page.reload()
    expect(tab.slider).to_be_visible()
    assert width(findings(tab)) == drawn

    edge(tab, "Width of the findings").dblclick()
    expect(edge(tab, "Width of the findings")).to_have_attribute("aria-valuenow", str(round(before)))


def test_arrow_keys_draw_it_too(tab: Tab) -> None:
    handle = edge(tab, "Width of the findings")
    before = width(findings(tab))

    handle.press("ArrowRight")
    assert width(findings(tab)) == before + 40
    expect(handle).to_have_attribute("aria-valuenow", str(round(before + 40)))
    handle.press("ArrowLeft")
    assert width(findings(tab)) == before
    handle.press("End")
    assert str(round(width(findings(tab)))) == handle.get_attribute("aria-valuemax")
    assert width(tab.frame.locator("canvas[role=img]")) >= 200
    handle.press("Home")
    assert str(round(width(findings(tab)))) == handle.get_attribute("aria-valuemin")


def test_the_details_and_the_drawer_have_an_edge_as_well(tab: Tab) -> None:
    tab.findings.first.get_by_role("button", name="Show in the graph").click()
    before = width(tab.details)

    draw(tab, edge(tab, "Width of the details"), -100)
    assert abs(width(tab.details) - before - 100) < 6
    tab.open_table()
    drawer = tab.frame.get_by_role("region", name="Numbers").bounding_box()
    edge(tab, "Height of the drawer").press("ArrowUp")
    higher = tab.frame.get_by_role("region", name="Numbers").bounding_box()

    assert drawer is not None
    assert higher is not None
    assert higher["height"] == drawer["height"] + 40


def test_where_nothing_may_be_kept_all_is_as_at_the_start(browser: Browser, board: TensorBoard) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.context.add_init_script(f"if (window !== window.top) {{ {NO_STORAGE} }}")
    tab = open_tab(page, board, runs=2)
    before = width(findings(tab))

    edge(tab, "Width of the findings").press("ArrowRight")

    assert width(findings(tab)) == before + 40
    assert errors == []
    page.close()
