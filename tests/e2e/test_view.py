"""The page of `tb-gradflow view`: the same as in TensorBoard's tab, as a page of its own."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.demo.training import Trained
from tests.e2e.tab import THRESHOLD, Tab
from tests.serve.test_view import view


def test_a_run_is_shown_and_explored_without_tensorboard(page: Page, step_filter: Trained) -> None:
    with view(step_filter.logdir) as viewer:
        page.goto(viewer.url)
        tab = Tab(page)
        tab.frame = page
        expect(tab.slider).to_be_visible(timeout=30_000)
        tab.rest()
        expect(tab.runs.locator("option")).to_have_count(2)

        tab.choose_run("step_filter/broken")
        tab.show(tab.findings.first)
        tab.screenshot("view")

        assert tab.rows()[THRESHOLD].status == "disconnected"
        assert "p.gradflow.run=" in page.url

        page.reload()
        expect(tab.summary).to_contain_text("gets no gradient", timeout=30_000)
    expect(page.get_by_text("The server does not respond")).to_be_visible(timeout=30_000)
