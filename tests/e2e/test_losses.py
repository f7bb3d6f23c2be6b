"""A step with two losses, one of which is broken: which is shown, and that the header has room for the choice."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tb_gradflow.record.schema import Target, VariableGradient
from tests.e2e.tab import open_tab
from tests.serve.processes import TensorBoard, tensorboard
from tests.store.samples import open_writer, step, trace


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TensorBoard]:
    """Two runs of a healthy loss and, after it, one that a comparison cuts off from its variable."""
    one = trace()
    healthy = Target("healthy_loss", 4, 0, 0, "none")
    broken = dataclasses.replace(one.targets[0], name="broken_loss")
    asked = (VariableGradient(0, 0, "value", 0, True), VariableGradient(1, 1, "none", None, True))
    two = dataclasses.replace(
        one, targets=(healthy, broken), variable_gradients=asked, tensor_gradients=one.tensor_gradients[1:]
    )
    place = tmp_path_factory.mktemp("losses")
    for name in ("a_run_with_two_losses", "another_run_with_two_losses"):
        with open_writer(Path(place) / name) as writer:
            writer.write_trace(two)
            writer.write_step(dataclasses.replace(step(0), losses=(0.5, 0.25)))
    with tensorboard(f"--logdir={place}") as running:
        yield running


def test_the_loss_of_the_worst_finding_is_shown_first_and_the_chosen_one_is_in_the_link(
    page: Page, board: TensorBoard
) -> None:
    tab = open_tab(page, board, runs=2)
    loss = tab.frame.get_by_label("Loss", exact=True)
    expect(loss).to_have_value("broken_loss")

    loss.select_option("healthy_loss")
    expect(page).to_have_url(re.compile(r"p\.gradflow\.loss=healthy_loss"))
    page.reload()
    expect(loss).to_have_value("healthy_loss")

    tab.show(tab.findings.first)
    expect(loss).to_have_value("broken_loss")
    page.go_back()
    expect(loss).to_have_value("healthy_loss")


def test_nothing_in_a_narrow_header_lies_over_its_neighbour(page: Page, board: TensorBoard) -> None:
    page.set_viewport_size({"width": 800, "height": 700})
    tab = open_tab(page, board, runs=2)
    tab.screenshot("narrow-losses")

    edges: list[tuple[float, float]] = tab.frame.locator("gf-app").evaluate(
        """app => ["header select", "header > gf-search", "header > button", "header > .menu"]
            .flatMap(selector => [...app.shadowRoot.querySelectorAll(selector)])
            .map(e => e.getBoundingClientRect()).filter(({width}) => width > 0).map(({left, right}) => [left, right])"""
    )

    loss = tab.frame.get_by_label("Loss", exact=True)
    room, needed = loss.evaluate(
        """field => {
            const canvas = document.createElement("canvas").getContext("2d");
            canvas.font = getComputedStyle(field).font;
            return [field.clientWidth, canvas.measureText(field.value).width];
        }"""
    )

    # The arrow of the list takes the rest.
    assert room >= needed + 30
    assert len(edges) >= 6
    assert all(right <= left for (_, right), (left, _) in itertools.pairwise(sorted(edges)))
