"""What leads a reader through the picture: the sentence at first sight, and the path of a finding, op by op."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.e2e.tab import THRESHOLD, Tab, number, open_tab
from tests.serve.processes import TensorBoard


def path_of(tab: Tab) -> Locator:
    return tab.findings.first.get_by_role("region", name="The path, op by op")


def current(tab: Tab) -> str:
    return path_of(tab).locator('[aria-current="step"] .name').inner_text().rstrip(" ⊘")


def selected(tab: Tab) -> list[str]:
    return [name for name, item in tab.items().items() if "selected" in item.state]


def test_the_path_is_followed_from_the_variable_to_the_loss(tab: Tab) -> None:
    tab.show(tab.findings.first)
    assert current(tab) == "Less"
    assert path_of(tab).get_by_role("listitem").first.inner_text().split() == ["threshold", "none"]
    assert path_of(tab).get_by_role("listitem").last.inner_text().split()[0] == "loss"

    path_of(tab).get_by_role("button", name="Previous op on the path").click()

    assert current(tab) == "Cast"
    tab.rest()
    assert [name.rpartition("/")[2] for name in selected(tab)] == ["Cast"]
    assert next(item for name, item in tab.items().items() if name.endswith("/Less")).is_lit
    expect(tab.details).to_contain_text("sensors_1/step_filter_1/SequenceMask/Cast")


def test_keys_follow_it_to_both_ends_and_no_further(tab: Tab) -> None:
    tab.show(tab.findings.first)
    length = path_of(tab).get_by_role("listitem").count()
    for _ in range(length + 2):
        tab.frame.locator("gf-app").press(".")
    assert current(tab) == "loss"
    expect(path_of(tab).get_by_role("button", name="Next op on the path")).to_be_disabled()

    for _ in range(length + 2):
        tab.frame.locator("gf-app").press(",")

    assert current(tab) == "threshold"
    tab.rest()
    assert selected(tab) == [THRESHOLD]


def test_arrow_keys_lead_through_the_list_and_keep_the_focus_in_it(tab: Tab) -> None:
    tab.show(tab.findings.first)
    path_of(tab).locator('[aria-current="step"]').focus()

    tab.page.keyboard.press("ArrowDown")
    assert current(tab) == "Cast_1"
    tab.page.keyboard.press("ArrowDown")

    assert current(tab) == "transpose"
    expect(path_of(tab).get_by_role("note")).to_contain_text("step_filter.py:34")
    expect(path_of(tab).get_by_role("note")).to_contain_text("return signal * tf.transpose(self.mask(threshold))")


def test_each_op_has_the_norm_of_its_gradient(tab: Tab) -> None:
    tab.show(tab.findings.first)

    said = path_of(tab).locator(".gradient").all_inner_texts()
    norms = [number(text) for text in said if text not in ("none", "\u2013")]

    assert len(said) == path_of(tab).get_by_role("listitem").count()
    assert len(norms) >= 3
    assert all(norm > 0 for norm in norms)
    # That of the loss with respect to itself.
    assert norms[-1] == 1


def test_choosing_a_finding_does_not_scroll_its_head_away(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 900, "height": 600})
    tab.show(tab.findings.first)

    head = tab.findings.first.get_by_role("button", name="Show in the graph").bounding_box()
    strip = tab.summary.bounding_box()
    assert head is not None
    assert strip is not None
    assert head["y"] >= strip["y"] + strip["height"]


@pytest.mark.parametrize("width", [1440, 900])
def test_a_first_visitor_is_told_once_how_to_read_the_picture(browser: Browser, board: TensorBoard, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    first = open_tab(context.new_page(), board, runs=2)
    sentence = first.frame.get_by_role("complementary", name="How to read the picture")
    expect(sentence).to_contain_text("the gradient flows back up")
    first.screenshot(f"hint-{width}")

    sentence.get_by_role("button", name="Got it").click()
    expect(sentence).to_have_count(0)

    second = open_tab(context.new_page(), board, runs=2)
    expect(second.frame.get_by_role("complementary", name="How to read the picture")).to_have_count(0)
    second.frame.locator("gf-app").press("?")
    expect(second.frame.get_by_role("dialog", name="Keys")).to_contain_text("the gradient flows back up")
    context.close()
