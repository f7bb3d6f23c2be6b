"""Variables that the step is given as arguments, in the place of those that it closes over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf

import tb_gradflow


def report_of(directory: Path, made: Any) -> Any:
    image = tf.Variable([1.3, 2.2, 3.1], name="image")

    @tb_gradflow.watch(directory)
    def step(picture: Any, wanted: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((made(picture) - wanted) ** 2)
        return tape.gradient(loss, picture)

    for _ in range(2):
        step(image, tf.constant(0.5))
    step.flush()
    return tb_gradflow.open_log(directory).report()


def test_what_cuts_an_argument_off_is_named(tmp_path: Path) -> None:
    report = report_of(tmp_path, tf.round)

    [finding] = report.findings
    assert (finding.cause, finding.variables) == ("nondiff_rounding", ("image",))
    assert report.variables["image"].status == "disconnected"


def test_an_argument_that_the_gradient_reaches_is_connected(tmp_path: Path) -> None:
    report = report_of(tmp_path, tf.sin)

    assert report.healthy
    assert report.variables["image"].status == "connected"
