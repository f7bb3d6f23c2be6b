"""Everything without a mouse: where keys lead, and where the focus is."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e.tab import Tab


def test_keys_work_before_anybody_clicked_into_the_page(tab: Tab) -> None:
    tab.page.keyboard.press("n")

    expect(tab.summary).to_contain_text("Finding 1 of 1")
    tab.page.keyboard.press("Escape")
    expect(tab.details).to_have_count(0)


def test_the_list_of_keys_has_the_focus_and_gives_it_back(tab: Tab) -> None:
    stage = tab.frame.locator("canvas.stage")
    stage.focus()
    tab.page.keyboard.press("?")
    keys = tab.frame.get_by_role("dialog", name="Keys")
    expect(keys.get_by_role("button", name="Close")).to_be_focused()
    tab.page.keyboard.press("n")
    expect(tab.summary).to_contain_text("1 finding")

    tab.page.keyboard.press("Escape")

    expect(keys).to_have_count(0)
    expect(stage).to_be_focused()


def test_the_menu_closes_with_escape_and_with_a_look_elsewhere(tab: Tab) -> None:
    menu, entry = tab.frame.get_by_label("Export"), tab.frame.get_by_role("button", name="Picture as SVG")
    menu.click()
    expect(entry).to_be_visible()
    tab.page.keyboard.press("Escape")
    expect(entry).to_be_hidden()
    menu.click()
    expect(entry).to_be_visible()
    tab.frame.locator("canvas.stage").click(position={"x": 20, "y": 300})
    expect(entry).to_be_hidden()


def test_arrows_lead_from_tab_to_tab_and_from_row_to_row(tab: Tab) -> None:
    tab.frame.get_by_role("tab", name="Variables").focus()
    tab.page.keyboard.press("ArrowRight")
    expect(tab.frame.get_by_role("tab", name="Heat map")).to_be_focused()
    expect(tab.frame.get_by_role("tabpanel", name="Heat map")).to_be_attached()
    tab.page.keyboard.press("ArrowLeft")

    stops = tab.frame.get_by_role("table", name="Variables").locator('[role=row][tabindex="0"]')
    expect(stops).to_have_count(1)
    stops.focus()
    tab.page.keyboard.press("ArrowDown")
    expect(stops).to_have_attribute("aria-rowindex", "3")
    expect(stops).to_be_focused()
