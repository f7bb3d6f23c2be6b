"""An embedding of fractions, which all become the same index, and embeddings of floating numbers that are whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

import tb_gradflow

RANDOM = np.random.default_rng(0)
TOKENS = RANDOM.integers(0, 50, (48, 12))
SCALED = (TOKENS / 50).astype("float32")
Y = (TOKENS.sum(1) > 300).astype("float32")


def model() -> Any:
    keras.utils.set_random_seed(3)
    last = layers.Dense(1, activation="sigmoid")
    return keras.Sequential(
        [keras.Input((12,)), layers.Embedding(50, 4, name="words"), layers.GlobalAveragePooling1D(), last]
    )


def loud(report: tb_gradflow.Report) -> list[str]:
    return [each.cause for each in report.findings if each.severity != "info"]


@pytest.mark.parametrize("x", [SCALED, SCALED - 0.5, 0.4 * SCALED + 7.1], ids=["scaled", "of both signs", "shifted"])
def test_fractions_that_become_one_index_are_named(x: Any) -> None:
    network = model()
    network.compile("sgd", "binary_crossentropy")

    report = tb_gradflow.explain(network, x, Y)

    assert loud(report) == ["fractions_as_indices"]
    [finding] = report.findings
    assert finding.variables == ("sequential/words/embeddings",)
    assert f"from {x.min():.6g} to {x.max():.6g}, become {int(x.flat[0])}." in finding.message
    assert report.to_dict()["verdict"]["kind"] == "inputs"


@pytest.mark.parametrize("run_eagerly", [False, True])
@pytest.mark.parametrize(("x", "causes"), [(SCALED, ["fractions_as_indices"]), (TOKENS.astype("float32"), [])])
def test_a_training(tmp_path: Path, x: Any, causes: list[str], *, run_eagerly: bool) -> None:
    network = model()
    network.compile("adam", "binary_crossentropy", run_eagerly=run_eagerly)

    network.fit(x, Y, epochs=2, batch_size=16, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    assert loud(tb_gradflow.open_log(tmp_path).report()) == causes


@pytest.mark.parametrize(
    "x",
    [TOKENS, TOKENS.astype("float32"), np.full((48, 12), 3.0, "float32"), (TOKENS % 2).astype("float32")],
    ids=["integers", "floating", "all the same", "two of them"],
)
def test_whole_numbers_are_not(x: Any) -> None:
    network = model()
    network.compile("sgd", "binary_crossentropy")

    assert loud(tb_gradflow.explain(network, x, Y)) == []


def test_a_batch_is_trained_to_the_same_bits(tmp_path: Path) -> None:
    def weights(callbacks: list[Any]) -> list[Any]:
        network = model()
        network.compile("adam", "binary_crossentropy")
        network.fit(SCALED, Y, epochs=3, batch_size=16, shuffle=False, verbose=0, callbacks=callbacks)
        return [each.tobytes() for each in network.get_weights()]

    assert weights([]) == weights([tb_gradflow.GradFlowCallback(tmp_path)])
