"""The journeys of docs/journeys.md, taken: the modules are called in the order in which the page lists them."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tests.hostile.readers import Board

REPOSITORY = Path(__file__).parents[2]
PACKAGE = Path(tb_gradflow.__file__).parent
PAGE = (REPOSITORY / "docs" / "journeys.md").read_text(encoding="utf-8")

MODULE = re.compile(r"^\d+\. `([\w/.]+)`", re.MULTILINE)


def modules_of(heading: str, part: str | None = None) -> list[str]:
    """The modules that the page lists below a heading, or below a line of its section."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    if part is not None:
        section = re.split(r"\n[A-Z][^\n]*:\n", section.partition(f"\n{part}:\n")[2])[0]
    return MODULE.findall(section)


@contextmanager
def called() -> Iterator[list[str]]:
    """The modules of the package in the order of their first calls, in all threads that begin meanwhile."""
    order: dict[str, None] = {}

    def see(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                order.setdefault(path.relative_to(PACKAGE).as_posix())

    modules: list[str] = []
    before = sys.getprofile()
    sys.setprofile(see)
    threading.setprofile(see)
    try:
        yield modules
    finally:
        sys.setprofile(before)
        threading.setprofile(before)
        modules += order


def watched_step(log_dir: Path) -> Callable[[], object]:
    weight = tf.Variable(1.0, name="weight")

    @tb_gradflow.watch(log_dir)
    @tf.function
    def step(x: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = tf.square(weight * x)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))

    return lambda: step(tf.constant(2.0))


def fit(log_dir: Path, broken_batch: int | None = None, **options: Any) -> Callable[[], object]:
    keras = tf.keras
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.ones((40, 3), np.float32)
    if broken_batch is not None:
        x[4 * broken_batch + 1] = np.nan
    callback = tb_gradflow.GradFlowCallback(log_dir, **options)
    return lambda: model.fit(x, np.ones((40, 1)), batch_size=4, shuffle=False, verbose=0, callbacks=[callback])


def first_nan(log_dir: Path) -> Callable[[], object]:
    return fit(log_dir, broken_batch=7, update_freq=1000)


@pytest.mark.parametrize(
    ("heading", "part", "program"),
    [
        ("A gradient, from `tape.gradient` to a pixel", "Recording", watched_step),
        ("The first recorded step of a `fit`", None, fit),
        ("The first NaN", None, first_nan),
    ],
)
def test_a_journey_passes_its_modules_in_this_order(
    heading: str, part: str | None, program: Callable[[Path], Callable[[], object]], tmp_path: Path
) -> None:
    listed = modules_of(heading, part)
    train = program(tmp_path)
    with called() as modules:
        train()
    assert listed
    assert [module for module in modules if module in listed] == listed


def test_the_journey_goes_on_in_tensorboard(tmp_path: Path) -> None:
    watched_step(tmp_path)()
    board = Board(tmp_path)
    with called() as modules:
        place = board.ask("runs", {})["runs"][0]
        overview = board.ask("overview", {"run": place["run"]})
        board.ask("report", {"run": place["run"], "session": overview["session"]["id"], "step": 0})

    listed = modules_of("A gradient, from `tape.gradient` to a pixel", "Reading, in TensorBoard")
    assert listed
    assert [module for module in modules if module in listed] == listed


def test_the_journey_ends_in_modules_that_are_there() -> None:
    listed = modules_of("A gradient, from `tape.gradient` to a pixel", "Drawing, in the browser")
    assert listed
    for path in listed:
        assert (REPOSITORY / path).is_file(), path
