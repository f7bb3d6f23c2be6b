"""Beside TensorBoard's other tabs: from a finding to the scalars of its run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import tensorflow as tf
from playwright.sync_api import expect

from tests.demo.training import Trained
from tests.e2e.tab import Tab
from tests.serve.processes import TensorBoard, tensorboard


@pytest.fixture(scope="module")
def board(step_filter: Trained, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TensorBoard]:
    """The broken run has scalars beside it, where Keras writes them; the fixed one has none."""
    logdir: Path = tmp_path_factory.mktemp("beside")
    shutil.copytree(step_filter.logdir, logdir, dirs_exist_ok=True)
    for run, tag in (("step_filter/broken/train", "epoch_loss"), ("another/train", "epoch_loss")):
        with tf.summary.create_file_writer(str(logdir / run)).as_default():
            for step in range(3):
                tf.summary.scalar(tag, 1.0 / (1 + step), step=step)
    with tensorboard(f"--logdir={logdir}") as running:
        yield running


def test_a_finding_leads_to_the_scalars_of_its_run(tab: Tab) -> None:
    tab.choose_run("step_filter/broken")
    link = tab.findings.first.get_by_role("link", name="Scalars at step 312")
    expect(link).to_be_visible()

    with tab.page.context.expect_page() as opened:
        link.click()

    page = opened.value
    expect(page.get_by_role("tab", name="Time Series")).to_have_attribute("aria-selected", "true")
    expect(page.locator("scalar-card").first).to_contain_text("epoch_loss")
    expect(page.locator("runs-data-table")).to_contain_text("step_filter/broken/train")
    expect(page.locator("runs-data-table")).not_to_contain_text("another")
    # The tab that was left is as it was.
    expect(tab.summary).to_contain_text("1 of 5 trainable variables gets no gradient")


def test_a_run_without_scalars_has_no_link_to_any(tab: Tab) -> None:
    tab.choose_run("step_filter/fixed")
    expect(tab.summary).to_contain_text("Healthy")

    assert tab.frame.get_by_role("link", name="Scalars").count() == 0
