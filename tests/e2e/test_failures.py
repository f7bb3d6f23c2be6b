"""Requests that fail: each is told, takes nothing else with it, and is made again."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from tests.e2e.tab import LESS, Tab, open_tab, part_of
from tests.serve.processes import TensorBoard


def refuse(route: Route) -> None:
    route.fulfill(status=500, json={"error": "the disk is full of ants"})


def test_one_failed_request_takes_nothing_else_with_it(page: Page, board: TensorBoard) -> None:
    page.route("**/heat?*", refuse)
    page.route("**/course?*", refuse)
    tab = open_tab(page, board, runs=2)
    tab.frame.get_by_role("tab", name="Heat map").click()

    expect(tab.frame.get_by_text("the disk is full of ants")).to_be_visible()
    expect(tab.findings).to_have_count(1)
    assert LESS in tab.items()


def test_what_failed_is_asked_for_again(page: Page, board: TensorBoard) -> None:
    page.route("**/trace?*", refuse)
    board.wait_for_runs(2)
    page.goto(f"{board.url}#gradflow")
    tab = Tab(page)
    expect(tab.frame.get_by_role("alert")).to_contain_text("the disk is full of ants")

    page.unroute("**/trace?*")

    expect(part_of(tab, LESS)).to_be_attached(timeout=30_000)
    expect(tab.frame.get_by_role("alert")).to_have_count(0)
    expect(tab.findings).to_have_count(1)


def test_runs_that_cannot_be_read_are_not_taken_for_none(page: Page, board: TensorBoard) -> None:
    page.route("**/gradflow/runs?*", refuse)
    board.wait_for_runs(2)
    page.goto(f"{board.url}#gradflow")
    tab = Tab(page)
    expect(tab.frame.get_by_role("alert")).to_contain_text("the disk is full of ants")
    expect(tab.frame.get_by_text("This page retries every few seconds")).to_be_visible()
    expect(tab.frame.get_by_text("No gradient flow recorded yet")).to_have_count(0)

    page.unroute("**/gradflow/runs?*")

    expect(part_of(tab, LESS)).to_be_attached(timeout=30_000)
    expect(tab.frame.get_by_role("alert")).to_have_count(0)
