"""One browser for all tests, a page for each; and a TensorBoard, for those that ask for no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.demo.training import Trained
from tests.e2e.tab import Tab, open_tab
from tests.serve.processes import TensorBoard, tensorboard

# The browser shares few cores with TensorBoard and other tests: five seconds, as is usual, can be too few.
expect.set_options(timeout=60_000)


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # In a container the browser's own sandbox has not the rights that it needs.
        launched = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A window of a common size. What goes wrong in it fails the test."""
    opened = browser.new_page(viewport={"width": 1440, "height": 900})
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    opened.close()
    assert errors == []


@pytest.fixture(scope="module")
def board(step_filter: Trained) -> Iterator[TensorBoard]:
    """On the logs of the demonstration `step_filter`."""
    with tensorboard(f"--logdir={step_filter.logdir}") as running:
        yield running


@pytest.fixture
def tab(page: Page, board: TensorBoard) -> Tab:
    return open_tab(page, board, runs=2)
