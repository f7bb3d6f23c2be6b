"""docs/masks.md says what Keras does, and its remedies keep padding out."""

from __future__ import annotations

import re
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

import tb_gradflow
from tests.docs import mask_table

WORDS = np.tile([[3, 7, 1, 12, 5, 9, 0, 0, 0, 0]], [8, 1])
LABELS = np.linspace(-1, 1, 8, dtype="float32")[:, None]


def test_the_page_is_what_the_generator_writes() -> None:
    page = mask_table.PAGE.read_text()
    if f"Keras {keras.version()}. " not in page:
        pytest.skip("the page was made from another version of Keras, whose layers may do otherwise")

    assert mask_table.written() == page


def layers_of(kind: str) -> list[Any]:
    """A layer that drops the mask, and what brings the steps together behind it."""
    made = {
        "Flatten": [layers.Flatten()],
        "GlobalMaxPooling1D": [layers.GlobalMaxPooling1D()],
        "Conv1D": [layers.Conv1D(4, 3, padding="same"), layers.GlobalAveragePooling1D()],
        "Lambda": [layers.Lambda(double), layers.GlobalAveragePooling1D()],
        "RMSNormalization": [layers.RMSNormalization(), layers.GlobalAveragePooling1D()],
        "MaxPooling1D": [layers.MaxPooling1D(2), layers.Flatten()],
    }
    return made[kind]


def double(x: Any) -> Any:
    return 2.0 * x


def mended(kind: str, fix: str) -> list[Any]:
    """The same, with the code of the remedy pasted in."""
    layer, *behind = layers_of(kind)
    codes = re.findall(r"`([^`]+)`", fix)
    for code in codes:
        if code.startswith("layer."):
            exec(code, {"layer": layer})
    found = next((code for code in codes if code.startswith("keras.layers.Lambda(")), None)
    pasted = [eval(found, {"keras": keras, "function": double})] if found is not None else []
    return [*pasted, *behind] if kind in ("GlobalMaxPooling1D", "Lambda") else [*pasted, layer, *behind]


def model_of(*middle: Any) -> Any:
    keras.utils.set_random_seed(1)  # some maximum is at padding
    given = keras.Input((10,))
    made = given
    for layer in (layers.Embedding(20, 8, mask_zero=True), *middle, layers.Dense(1)):
        made = layer(made)
    model = keras.Model(given, made)
    model.compile("sgd", "mse")
    return model


@pytest.mark.filterwarnings("ignore:.*does not support masking.*")
@pytest.mark.parametrize(
    "kind", ["Flatten", "GlobalMaxPooling1D", "Conv1D", "Lambda", "RMSNormalization", "MaxPooling1D"]
)
def test_the_remedy_pasted_keeps_padding_out(kind: str) -> None:
    [finding] = tb_gradflow.explain(model_of(*layers_of(kind)), WORDS, LABELS).findings

    model = model_of(*mended(kind, finding.fix))
    report = tb_gradflow.explain(model, WORDS, LABELS)
    before = model.predict(WORDS, verbose=0)
    [rows] = model.layers[1].get_weights()
    rows[0] += 5.0
    model.layers[1].set_weights([rows])

    assert finding.cause == "mask_dropped"
    assert report.healthy, str(report)
    assert np.allclose(model.predict(WORDS, verbose=0), before, atol=1e-5)
