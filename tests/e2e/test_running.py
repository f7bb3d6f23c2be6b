"""A training that goes on while its page is open, and names that want to be more than text."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tb_gradflow import GradFlowCallback
from tb_gradflow.record.schema import Trace
from tests.e2e.tab import open_tab
from tests.serve.processes import tensorboard
from tests.store.samples import open_writer, session, step, trace, write_log

HOSTILE = "<img src=x onerror=window.top.hacked=1>"


@pytest.mark.parametrize("loader", ["true", "false"], ids=["rust", "python"])
def test_new_steps_of_a_training_appear_without_a_reload(tmp_path: Path, page: Page, loader: str) -> None:
    from tb_gradflow.demo import step_filter

    model = step_filter.make_model(fixed=False)
    model.compile("adam", "mse")
    signals, answers = step_filter.make_data(64)
    recorder = GradFlowCallback(tmp_path / "run", update_freq=1)
    model.fit(signals, answers, batch_size=32, verbose=0, callbacks=[recorder])
    with tensorboard(f"--logdir={tmp_path}", f"--load_fast={loader}") as board:
        tab = open_tab(page, board, runs=1)
        expect(tab.slider).to_have_attribute("aria-valuetext", "step 1")
        page.evaluate("window.isTheSamePage = true")

        model.fit(signals, answers, batch_size=32, epochs=3, verbose=0, callbacks=[recorder])

        expect(tab.slider).to_have_attribute("aria-valuetext", "step 7")
        assert page.evaluate("window.isTheSamePage") is True
        tab.slider.press("Home")
        expect(tab.slider).to_have_attribute("aria-valuetext", "step 0")
        # Every step was recorded, so nothing is known of what that costs.
        expect(tab.frame.get_by_text("recording:")).to_have_count(0)


def test_whoever_looks_at_an_earlier_step_is_left_there(tmp_path: Path, page: Page) -> None:
    writer = open_writer(tmp_path / "run")
    writer.write_trace(trace())
    for at in range(3):
        writer.write_step(step(at))
    writer.flush()
    with tensorboard(f"--logdir={tmp_path}") as board:
        tab = open_tab(page, board, runs=1)
        tab.slider.press("Home")
        expect(tab.slider).to_have_attribute("aria-valuetext", "step 0")

        writer.write_step(step(3))
        writer.close()

        expect(tab.slider).to_have_attribute("max", "3")
        expect(tab.slider).to_have_attribute("aria-valuetext", "step 0")


def test_tensorboards_reload_button_brings_new_steps(tmp_path: Path, page: Page) -> None:
    """Without the page's own looks, which come every few seconds."""
    page.add_init_script("if (window.parent !== window) window.setInterval = () => 0")
    writer = open_writer(tmp_path / "run")
    writer.write_trace(trace())
    writer.write_step(step(0))
    with tensorboard(f"--logdir={tmp_path}") as board:
        tab = open_tab(page, board, runs=1)
        expect(tab.slider).to_have_attribute("aria-valuetext", "step 0")

        writer.write_step(step(1))
        writer.close()
        board.wait_for_steps("run/gradflow", 2)
        page.locator("button.reload-button").click()

        expect(tab.slider).to_have_attribute("aria-valuetext", "step 1")


def test_a_directory_with_several_recordings_says_so(tmp_path: Path, page: Page) -> None:
    for began in (1_700_000_000_000, 1_700_000_900_000):
        write_log(tmp_path / "run", of=session(id=began))
    with tensorboard(f"--logdir={tmp_path}") as board:
        tab = open_tab(page, board, runs=1)

        expect(tab.frame.get_by_text("newest of 2 recordings")).to_be_visible()


def test_names_are_shown_as_text_whatever_they_hold(tmp_path: Path, page: Page) -> None:
    writer = open_writer(tmp_path / HOSTILE)
    writer.write_trace(with_hostile_names(trace(step_filter=f"{HOSTILE}/threshold")))
    writer.write_step(step(0))
    writer.close()
    with tensorboard(f"--logdir={tmp_path}") as board:
        tab = open_tab(page, board, runs=1)
        tab.show(tab.findings.first)
        tab.screenshot("hostile")

        expect(tab.findings.first).to_contain_text(HOSTILE)
        assert f"{HOSTILE}/threshold" in tab.rows()
        assert f"{HOSTILE}/2/Less" in tab.items()
        assert tab.runs.locator("option").all_inner_texts() == [HOSTILE]
        assert tab.frame.locator("img").count() == 0
        assert page.evaluate("window.hacked") is None


def with_hostile_names(of: Trace) -> Trace:
    """The same trace, each op in a scope whose name is a piece of HTML."""
    ops = [dataclasses.replace(op, name=f"{HOSTILE}/{index}/{op.type}") for index, op in enumerate(of.ops)]
    return dataclasses.replace(of, ops=tuple(ops))
