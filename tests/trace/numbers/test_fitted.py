"""A network that has learned its batch by heart, as people check that it can: small gradients are its goal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

_ROWS = np.eye(4, dtype="float32")


def by_hand(wanted: Any, told: Any) -> Any:
    return -tf.reduce_mean(tf.reduce_sum(wanted * tf.math.log(told + 1e-8), -1))


def from_logits(wanted: Any, told: Any) -> Any:
    return keras.losses.categorical_crossentropy(wanted, told, from_logits=True)


def next_to_nothing(wanted: Any, told: Any) -> Any:
    return 1e-9 * from_logits(wanted, told)


def trained(activation: str | None, loss: str | Callable[[Any, Any], Any], directory: Path) -> tuple[Any, Any]:
    """The model, and what the log of its training says."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(4, activation, name="last")]
    )
    model.compile(keras.optimizers.Adam(0.1), loss, jit_compile=False)
    model.fit(
        _ROWS, _ROWS, epochs=100, verbose=0, shuffle=False, callbacks=[tb_gradflow.GradFlowCallback(str(directory))]
    )
    return model, tb_gradflow.open_log(str(directory)).report()


@pytest.mark.parametrize(
    ("activation", "loss"), [("softmax", "categorical_crossentropy"), ("softmax", by_hand), (None, from_logits)]
)
def test_predictions_that_match_are_no_trouble(activation: str | None, loss: Any, tmp_path: Path) -> None:
    model, recorded = trained(activation, loss, tmp_path)

    for report in (recorded, tb_gradflow.explain(model, _ROWS, _ROWS)):
        assert report.healthy
        assert report.summary.startswith("Healthy")
        for finding in report.findings:
            assert "the loss is close to zero, so there is nothing left to learn from this batch" in finding.message


def test_a_loss_that_is_multiplied_by_next_to_nothing_has_not_been_learned_from(tmp_path: Path) -> None:
    _, report = trained(None, next_to_nothing, tmp_path)
    (finding,) = report.findings

    assert (finding.cause, finding.severity, finding.op.type) == ("vanishing_depth", "warning", "Mul")
    assert "`*`" in finding.message
    assert "1e-09" in finding.message
    assert "factor" in finding.fix
