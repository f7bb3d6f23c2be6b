"""Where two runs begin to differ, found on the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.tab import Tab


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_difference_is_found_with_the_keyboard(tab: Tab, scheme: str) -> None:
    tab.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    tab.choose_run("step_filter/fixed")
    tab.frame.get_by_label("Compare with").select_option(label="step_filter/broken")
    section = tab.frame.get_by_role("region", name="Where they begin to differ")
    button = section.get_by_role("button", name="Find the first difference")

    button.press("Enter")

    expect(section.get_by_role("status")).to_contain_text("The runs differ beyond rounding in step 0")
    expect(section.get_by_role("button", name="Look again")).to_be_focused()
    heads = section.get_by_role("columnheader")
    expect(heads.first).to_have_text("A: step_filter/broken")
    expect(heads.last).to_have_text("B: step_filter/fixed")
    row = section.get_by_role("row").filter(has=tab.frame.get_by_role("rowheader", name="op", exact=True))
    expect(row).to_contain_text("sensors_1/step_filter_1/SequenceMask/ExpandDims (ExpandDims)")

    section.get_by_role("button", name="Show step 0").press("Enter")

    expect(tab.frame.get_by_role("tabpanel", name="Changes")).to_contain_text("both at step 0")
    expect(section.get_by_role("button", name="Show step 0")).to_have_count(0)


def test_another_run_is_another_question(tab: Tab) -> None:
    tab.choose_run("step_filter/fixed")
    compared = tab.frame.get_by_label("Compare with")
    compared.select_option(label="step_filter/broken")
    section = tab.frame.get_by_role("region", name="Where they begin to differ")
    section.get_by_role("button", name="Find the first difference").click()
    expect(section.get_by_role("table")).to_be_visible()

    compared.select_option(label="no other run")

    expect(section).to_have_count(0)
    compared.select_option(label="step_filter/broken")
    expect(section.get_by_role("button", name="Find the first difference")).to_be_visible()
    expect(section.get_by_role("table")).to_have_count(0)
