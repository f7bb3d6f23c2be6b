"""Edits of programs that are built of layers are applied to the file, which is then run from its beginning."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import tb_gradflow

HEAD = "import keras\nimport tensorflow as tf\n\n"

CHOICES = {
    "a function": (
        "def build(size=9):\n"
        "    inputs = keras.Input((4,))\n"
        "    x = keras.layers.Dense(size)(inputs)\n"
        "    x = keras.layers.Lambda(lambda p: keras.ops.argmax(p, axis=-1), output_shape=())(x)\n"
        '    x = keras.layers.Embedding(size, 5, name="again")(x)\n'
        "    return keras.Model(inputs, keras.layers.Dense(2)(x))\n\n"
        "model = build()\n",
        'keras.layers.Dense(5, use_bias=False, name="again", kernel_initializer="uniform")(x)',
    ),
    "a list": (
        "model = keras.Sequential([\n"
        "    keras.Input((4,)),\n"
        '    keras.layers.Dense(6, "softmax"),\n'
        "    keras.layers.Lambda(lambda p: tf.argmax(p, -1)),\n"
        "    keras.layers.Embedding(6, 3),\n"
        "    keras.layers.Dense(2),\n"
        "])\n",
        "keras.layers.Lambda(lambda p: tf.nn.softmax(p / 0.1, axis=-1)),",
    ),
    "two attributes": (
        "class Speller(keras.Model):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.first, self.second = keras.layers.Dense(7), keras.layers.Embedding(7, 2)\n\n"
        "    def call(self, x):\n"
        "        letter = tf.argmax(self.first(x), -1)\n"
        "        return self.second(letter)\n\n"
        "model = Speller()\n",
        "self.second(tf.range(self.second.input_dim))",
    ),
}

NOT_OFFERED = {
    "the indices are used twice": (
        "def build():\n"
        "    inputs = keras.Input((4,))\n"
        "    x = keras.layers.Lambda(lambda p: tf.argmax(p, -1))(keras.layers.Dense(3)(inputs))\n"
        "    rows = keras.layers.Embedding(3, 2)(x)\n"
        "    return keras.Model(inputs, rows + keras.layers.Embedding(3, 2)(x))\n\n"
        "model = build()\n"
    ),
    "the layer hides padding": (
        "model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(6),\n"
        "    keras.layers.Lambda(lambda p: tf.argmax(p, -1)), keras.layers.Embedding(6, 2, mask_zero=True)])\n"
    ),
}


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """The compiled model of a program, and a batch for it."""
    names = []

    def load(text: str) -> tuple[Any, Any, Any]:
        names.append(f"of_layers_{len(list(tmp_path.iterdir()))}")
        path = tmp_path / f"{names[-1]}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(names[-1], path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[names[-1]] = module = importlib.util.module_from_spec(spec)
        keras.backend.clear_session()
        keras.utils.set_random_seed(1)
        spec.loader.exec_module(module)
        rng = np.random.default_rng(1)
        x, y = (rng.normal(size=(16, width)).astype("float32") for width in (4, 2))
        module.model.compile(keras.optimizers.Adam(0.02), "mse")
        module.model(x)
        return module.model, x, y

    yield load
    for name in names:
        del sys.modules[name]


@pytest.mark.parametrize("form", CHOICES)
def test_rows_that_a_layer_looks_up_become_a_mean_of_rows(form: str, loaded: Any) -> None:
    body, written = CHOICES[form]
    text = HEAD + body

    report = tb_gradflow.explain(*loaded(text), try_fixes=True)

    [finding] = [each for each in report.findings if each.severity == "error"]
    assert finding.cause == "nondiff_index"
    edit = finding.edit
    assert edit is not None
    assert written in edit.after
    lines = text.split("\n")
    lines[edit.line - 1 : edit.end_line] = edit.after.split("\n")
    model, x, y = loaded("\n".join(lines))
    after = tb_gradflow.explain(model, x, y)
    assert {after.variables[name].status for name in finding.variables} == {"connected"}
    losses = model.fit(x, y, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("reason", NOT_OFFERED)
def test_no_rows_are_averaged_where_that_is_another_model(reason: str, loaded: Any) -> None:
    report = tb_gradflow.explain(*loaded(HEAD + NOT_OFFERED[reason]))

    [finding] = [each for each in report.findings if each.severity == "error"]
    assert finding.cause == "nondiff_index"
    assert finding.edit is None
