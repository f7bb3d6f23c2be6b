"""Layers that are given a mask and do not hand it on: told where padding gets a gradient, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

import tb_gradflow
from tb_gradflow.record.report import Finding

pytestmark = pytest.mark.filterwarnings("ignore:.*does not support masking.*")

WORDS = np.tile([[3, 7, 1, 12, 5, 9, 0, 0, 0, 0]], [8, 1])
FULL = np.tile([[3, 7, 1, 12, 5, 9, 2, 8, 4, 6]], [8, 1])
LABELS = np.linspace(-1, 1, 8, dtype="float32")[:, None]


def embedding() -> Any:
    return layers.Embedding(20, 8, mask_zero=True)


def found(model: Any, words: Any = WORDS) -> list[Finding]:
    model.compile("adam", "mse")
    findings = tb_gradflow.explain(model, words, LABELS).findings
    return [finding for finding in findings if finding.severity != "info"]


def stacked(*middle: Any) -> Any:
    return keras.Sequential([keras.Input((10,)), embedding(), *middle, layers.Dense(1)])


DROPPING: dict[str, Callable[[], list[Any]]] = {
    "Conv1D": lambda: [layers.Conv1D(4, 3, padding="same"), layers.GlobalAveragePooling1D()],
    "Flatten": lambda: [layers.Flatten()],
    "Lambda": lambda: [layers.Lambda(lambda x: 2.0 * x), layers.GlobalAveragePooling1D()],
}

KEEPING: dict[str, Callable[[], list[Any]]] = {
    "pooling": lambda: [layers.GlobalAveragePooling1D()],
    "recurrent": lambda: [layers.GRU(4)],
    "each step alone": lambda: [layers.Dense(4), layers.BatchNormalization(), layers.ReLU(), layers.GRU(4)],
    "the first step": lambda: [layers.Lambda(lambda x: x[:, 0])],
}


@pytest.mark.parametrize("kind", DROPPING)
def test_a_layer_that_drops_a_mask_is_told_by_its_name(kind: str) -> None:
    middle = DROPPING[kind]()

    [finding] = found(stacked(*middle))

    assert (finding.cause, finding.severity) == ("mask_dropped", "warning")
    assert f"`{middle[0].name}` ({kind})" in finding.message


@pytest.mark.parametrize("kind", KEEPING)
def test_nothing_is_told_where_padding_gets_no_gradient(kind: str) -> None:
    assert not found(stacked(*KEEPING[kind]()))


def test_nothing_is_told_of_a_batch_without_padding() -> None:
    assert not found(stacked(*DROPPING["Conv1D"]()), FULL)


def test_padding_that_is_taken_out_behind_the_layer_is_right() -> None:
    words, table = keras.Input((10,)), embedding()
    x = layers.Conv1D(4, 3, padding="same")(table(words))
    x = x * keras.ops.cast(table.compute_mask(words)[..., None], "float32")
    model = keras.Model(words, layers.Dense(1)(keras.ops.sum(x, axis=1)))

    assert not found(model)


def test_a_mask_of_the_input_itself_is_seen_without_a_variable_in_front() -> None:
    model = keras.Sequential(
        [keras.Input((10, 1)), layers.Masking(), *DROPPING["Conv1D"](), layers.Dense(1)],
    )

    [finding] = found(model, WORDS[..., None].astype("float32"))

    assert finding.cause == "mask_dropped"


def test_a_recorded_training_tells_of_it(tmp_path: Any) -> None:
    model = stacked(*DROPPING["Conv1D"]())
    model.compile("adam", "mse")
    model.fit(WORDS, LABELS, epochs=2, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(str(tmp_path))])

    report = tb_gradflow.open_log(str(tmp_path)).report()

    assert [finding.cause for finding in report.findings if finding.severity != "info"] == ["mask_dropped"]
    assert report.diagnosis.summary == "Padding trains like data: a layer does not pass its mask on."
