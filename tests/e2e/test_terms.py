"""A run recorded with its terms: the graph for one of them, the matrix, and their shares over the steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from playwright.sync_api import Page, expect

import tb_gradflow
from tests.e2e.tab import open_tab
from tests.serve.processes import TensorBoard, tensorboard


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TensorBoard]:
    place = tmp_path_factory.mktemp("terms")
    encoder, decoder = (
        tf.Variable(np.full((3, 3), size, "f"), name=name) for name, size in (("enc/w", 0.3), ("dec/w", 0.2))
    )

    @tb_gradflow.watch(Path(place) / "run", update_freq=1, terms=True)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            code = tf.tanh(x @ encoder)
            reconstruction = tf.reduce_mean(tf.square(code @ decoder - x))
            kl = tf.reduce_mean(tf.square(code))
            loss = reconstruction + 0.5 * kl
        for variable, gradient in zip((encoder, decoder), tape.gradient(loss, (encoder, decoder)), strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    for _ in range(4):
        step(tf.constant(np.random.default_rng(0).normal(size=(8, 3)).astype("f")))
    step.flush()
    with tensorboard(f"--logdir={place}") as running:
        yield running


def test_the_graph_is_shown_for_one_term_which_is_in_the_link(page: Page, board: TensorBoard) -> None:
    tab = open_tab(page, board, runs=1)
    bar = tab.frame.get_by_role("group", name="Terms of the loss")
    variables = tab.frame.get_by_role("table").first
    whole = variables.inner_text()

    bar.get_by_role("button", name="kl").click()

    expect(bar.get_by_role("note")).to_contain_text(
        "The gradient of a single term was measured at variables, not at the tensors between"
    )
    expect(page).to_have_url(re.compile(r"p\.gradflow\.term=kl"))
    expect(variables).not_to_have_text(whole)
    # The decoder gets nothing from the divergence.
    expect(tab.frame.get_by_role("listitem").filter(has_text="dec/w")).not_to_have_count(0)
    page.reload()
    expect(bar.get_by_role("button", name="kl")).to_have_attribute("aria-pressed", "true")
    tab.screenshot("one-term")
    bar.get_by_role("button", name="the whole loss").click()
    expect(bar.get_by_role("note")).to_have_count(0)


def test_the_matrix_chooses_what_is_drawn(page: Page, board: TensorBoard) -> None:
    tab = open_tab(page, board, runs=1)
    tab.frame.get_by_role("tab", name="Terms").click()
    matrix = tab.frame.get_by_role("region", name="Terms by layers")
    legend = tab.frame.locator("gf-terms .u-legend")

    expect(legend).to_contain_text("reconstruction")
    expect(legend).to_contain_text("kl")
    matrix.get_by_role("button", name="dec").click()
    expect(tab.frame.get_by_label("Layer", exact=True)).to_have_value("dec")
    matrix.get_by_role("button", name="reconstruction").click()

    expect(page).to_have_url(re.compile(r"p\.gradflow\.term=reconstruction"))
    tab.frame.locator("gf-terms").get_by_label("Quantity").select_option("value")
    expect(tab.frame.get_by_label("Layer", exact=True)).to_have_count(0)
    tab.screenshot("terms")
