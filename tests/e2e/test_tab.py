"""The main job in a real browser: which path is broken, at which op, in which line of code."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tb_gradflow import open_log
from tests.demo.training import Trained
from tests.e2e.tab import KERNEL, RED, THRESHOLD, Tab, dashes, is_near, number, open_tab
from tests.serve.processes import TensorBoard, tensorboard

MASK = "sensors_1/step_filter_1/SequenceMask"


@pytest.fixture(scope="module", params=["true", "false"], ids=["rust", "python"])
def board(request: pytest.FixtureRequest, step_filter: Trained) -> Iterator[TensorBoard]:
    with tensorboard(f"--logdir={step_filter.logdir}", f"--load_fast={request.param}") as running:
        yield running


def test_the_tab_is_there_and_says_what_is_wrong(tab: Tab) -> None:
    expect(tab.page.get_by_role("tab", name="Gradient flow")).to_have_attribute("aria-selected", "true")
    expect(tab.summary).to_contain_text("1 of 5 trainable variables gets no gradient")
    expect(tab.findings).to_have_count(1)
    expect(tab.findings).to_contain_text("tf.sequence_mask")
    expect(tab.findings).to_contain_text("return tf.sequence_mask(threshold, self.width, dtype=tf.float32)")
    expect(tab.findings).to_contain_text("tf.sigmoid")
    expect(tab.summary).to_contain_text("1 finding")


def test_the_cut_is_seen_before_anything_is_clicked(tab: Tab) -> None:
    tab.screenshot("broken")

    assert any("the gradient ends here" in each for each in tab.disconnected())
    assert is_near(tab.picture(), RED["light"]).sum() > 100


def test_a_click_on_the_finding_lights_the_path_from_the_variable_to_the_loss(tab: Tab) -> None:
    tab.show(tab.findings.first)
    tab.screenshot("broken-finding")
    expect(tab.summary).to_contain_text("Finding 1 of 1")

    items = tab.items()
    lit = {name for name, item in items.items() if item.is_lit}
    assert {THRESHOLD, f"{MASK}/Cast", f"{MASK}/Less", f"{MASK}/Cast_1", "loss"} <= lit
    assert KERNEL not in lit
    assert items[THRESHOLD].state.startswith("disconnected")
    assert "blocking op" in items[f"{MASK}/Less"].state
    assert items["loss"].kind == "loss"
    assert [each for each in tab.disconnected() if "the gradient ends here, on the highlighted path" in each]
    assert dashes(tab.picture(), RED["light"]) >= 3


def test_the_details_of_the_blocking_op_name_the_users_line(tab: Tab) -> None:
    tab.show(tab.findings.first)

    expect(tab.details).to_contain_text("tf.sequence_mask")
    expect(tab.details).to_contain_text("step_filter.py:")
    expect(tab.details).to_contain_text("return tf.sequence_mask(threshold, self.width, dtype=tf.float32)")
    expect(tab.details).to_contain_text("blocked")


def test_the_table_says_disconnected_and_the_numbers_of_the_log(tab: Tab, step_filter: Trained) -> None:
    log = open_log(step_filter.logdir / "step_filter" / "broken")

    rows = tab.rows()

    assert (rows[THRESHOLD].status, rows[THRESHOLD].gradient_norm) == ("disconnected", "none")
    assert rows[KERNEL].status == "connected"
    assert number(rows[KERNEL].gradient_norm) == pytest.approx(log.history(KERNEL)["norm"][-1], rel=5e-3)
    assert number(rows[KERNEL].weight_norm) == pytest.approx(log.history(KERNEL)["weight_norm"][-1], rel=5e-3)


def test_another_step_has_other_numbers(tab: Tab, step_filter: Trained) -> None:
    history = open_log(step_filter.logdir / "step_filter" / "broken").history(KERNEL)
    expect(tab.slider).to_have_attribute("aria-valuetext", f"step {history['step'][-1]}")

    tab.slider.press("Home")
    expect(tab.slider).to_have_attribute("aria-valuetext", "step 0")
    expect(tab.frame.get_by_role("complementary", name="Findings")).to_contain_text("tf.sequence_mask")
    tab.wait_for_numbers()
    first = number(tab.rows()[KERNEL].gradient_norm)
    tab.frame.get_by_role("button", name="Next recorded step").click()
    expect(tab.slider).to_have_attribute("aria-valuetext", f"step {history['step'][1]}")
    tab.wait_for_numbers()

    assert first == pytest.approx(history["norm"][0], rel=5e-3)
    assert number(tab.rows()[KERNEL].gradient_norm) == pytest.approx(history["norm"][1], rel=5e-3)


def test_a_finding_leads_to_the_page_of_its_cause(tab: Tab) -> None:
    with tab.page.context.expect_page() as opened:
        tab.findings.first.get_by_role("link", name="nondiff comparison").click()

    expect(opened.value.get_by_role("heading", name="nondiff_comparison")).to_be_visible()
    expect(opened.value.get_by_text("ERROR  nondiff_comparison")).to_be_visible()


def test_a_click_on_a_variable_shows_it_and_its_series(tab: Tab) -> None:
    tab.open_table().get_by_role("cell", name=KERNEL).click()

    expect(tab.details).to_contain_text("Gradient over the steps")
    expect(tab.details).to_contain_text("Weight and update over the steps")
    tab.rest()
    tab.screenshot("variable")
    assert "selected" in tab.items()[KERNEL].state


def test_the_legend_tells_a_variable_that_never_moves_from_one_of_which_nothing_is_known(tab: Tab) -> None:
    tab.open_table().get_by_role("cell", name=THRESHOLD).click()

    legend = tab.details.locator(".u-legend").last
    expect(legend).to_contain_text("Update0")


def test_both_runs_can_be_chosen_and_the_repaired_one_is_healthy(tab: Tab) -> None:
    assert [each.strip() for each in tab.runs.locator("option").all_inner_texts()] == [
        "step_filter/broken",
        "step_filter/fixed",
    ]

    tab.choose_run("step_filter/fixed")

    expect(tab.summary).to_contain_text("Healthy")
    expect(tab.findings).to_have_count(0)
    tab.rest()
    tab.screenshot("fixed")
    assert tab.disconnected() == []
    assert is_near(tab.picture(), RED["light"]).sum() == 0
    assert {row.status for row in tab.rows().values()} == {"connected"}


def test_the_address_leads_back_to_what_was_shown(tab: Tab) -> None:
    tab.choose_run("step_filter/fixed")
    expect(tab.summary).to_contain_text("Healthy")
    tab.slider.press("Home")
    expect(tab.slider).to_have_attribute("aria-valuetext", "step 0")
    expect(tab.page).to_have_url(re.compile(r"p\.gradflow\.step=0"))

    tab.page.reload()

    expect(tab.summary).to_contain_text("Healthy")
    expect(tab.slider).to_have_attribute("aria-valuetext", "step 0")


def test_it_is_dark_where_tensorboard_is(browser: Browser, board: TensorBoard) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="dark")
    tab = open_tab(page, board, runs=2)
    tab.show(tab.findings.first)
    tab.screenshot("broken-dark")

    ground: str = tab.frame.locator("gf-app").evaluate("app => getComputedStyle(app).backgroundColor")
    red, green, blue = (int(part) for part in ground.removeprefix("rgb(").removesuffix(")").split(",")[:3])
    assert max(red, green, blue) < 60
    assert dashes(tab.picture(), RED["dark"]) >= 3
    page.close()
