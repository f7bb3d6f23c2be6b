"""Logs that were damaged where the graph lies: the page says what is wrong and what to do, and is never blank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.tab import Tab
from tests.hostile.mutations import events_of, file_of
from tests.serve.processes import TensorBoard, tensorboard
from tests.store.samples import write_log

GZIPPED = b"\x1f\x8b\x08"


def damage(path: Path) -> None:
    """Turns some bytes of the trace, which is packed after the session, into others."""
    content = bytearray(path.read_bytes())
    at = content.index(GZIPPED, content.index(GZIPPED) + 1) + 80
    for place in range(at, at + 8):
        content[place] ^= 0x5A
    path.write_bytes(bytes(content))


def opened(page: Page, board: TensorBoard) -> Tab:
    page.goto(f"{board.url}#gradflow")
    return Tab(page)


@pytest.mark.parametrize("loader", ["true", "false"], ids=["rust", "python"])
def test_bytes_that_are_no_longer_those_that_were_written_are_told(tmp_path: Path, page: Page, loader: str) -> None:
    write_log(tmp_path / "whole")
    damage(write_log(tmp_path / "damaged"))
    with tensorboard(f"--logdir={tmp_path}", f"--load_fast={loader}") as board:
        board.wait_for_runs(2)
        tab = opened(page, board)
        # The page opens at the run that can be judged.
        expect(tab.summary).to_contain_text("1 of 2 trainable variables")
        tab.runs.select_option(label="damaged")
        # TensorBoard's Python loader checks what it reads, and stops there; the other hands it on.
        told = tab.frame.locator("[role=alert], p[role=status]")
        expect(told).to_contain_text("damaged")
        expect(told).to_contain_text("record a new run")
        tab.screenshot(f"damaged-{loader}")
        expect(tab.frame.get_by_text("Reading the graph")).to_have_count(0)
        if loader == "true":
            for name in ("Heat map", "Series", "Variables"):
                tab.frame.get_by_role("tab", name=name).click()
                expect(tab.frame.get_by_role("tabpanel")).to_contain_text("Nothing to list")
        tab.choose_run("whole")
        expect(tab.summary).to_contain_text("1 of 2 trainable variables")
        expect(tab.frame.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize("loader", ["true", "false"], ids=["rust", "python"])
def test_what_was_left_out_of_a_log_is_said_and_the_rest_is_shown(tmp_path: Path, page: Page, loader: str) -> None:
    path = write_log(tmp_path / "run", steps=3)
    events = events_of(path)
    for event in events:
        for value in event.summary.value:
            if "/gradients/" in value.tag:
                numbers = np.frombuffer(value.tensor.tensor_content, "<f4").copy()
                numbers[0] = -1.0  # a norm
                value.tensor.tensor_content = numbers.tobytes()
    path.write_bytes(file_of(events))
    with tensorboard(f"--logdir={tmp_path}", f"--load_fast={loader}") as board:
        board.wait_for_runs(1)
        tab = opened(page, board)

        told = tab.frame.locator("[role=note]")
        expect(told).to_contain_text("Part of the log is damaged and was left out")
        expect(tab.summary).to_contain_text("trainable variables")
        tab.screenshot(f"damage-{loader}")


def without_inputs(route: Route) -> None:
    answer = route.fetch()
    body = answer.json()
    del body["ops"][2]["inputs"]
    route.fulfill(json=body)


def without_ops(route: Route) -> None:
    route.fulfill(json={"index": 0})


@pytest.mark.parametrize("spoilt", [without_inputs, without_ops])
def test_a_graph_that_is_not_one_is_told(tmp_path: Path, page: Page, spoilt: Callable[[Route], None]) -> None:
    write_log(tmp_path / "run")
    page.route("**/trace?*", spoilt)
    with tensorboard(f"--logdir={tmp_path}") as board:
        board.wait_for_runs(1)
        tab = opened(page, board)

        expect(tab.frame.get_by_role("alert")).to_contain_text("damaged")
        expect(tab.frame.get_by_text("Something went wrong in this page")).to_have_count(0)
        expect(tab.slider).to_be_visible()
