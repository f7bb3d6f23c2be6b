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
from tb_gradflow.record.report import Edit

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
    assert finding.edit is not None
    assert written in finding.edit.after
    model, x, y = loaded(_edited(text, finding.edit))
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


def _edited(text: str, edit: Edit) -> str:
    lines = text.split("\n")
    lines[edit.line - 1 : edit.end_line] = edit.after.split("\n")
    return "\n".join(lines)


_LAYER = (
    "class Scaled(keras.layers.Layer):\n"
    "    def __init__(self, **kwargs):\n"
    "        super().__init__(**kwargs)\n"
    '        self.scale = tf.Variable(initial_value=tf.fill([4], 0.5), trainable=True, name="scale")\n'
    "        self.shift = tf.Variable(0.1 * tf.ones([4]))\n\n"
    "    def call(self, x):\n"
    "        return self.scale * x + self.shift\n\n"
)
_OUTPUT = "    return keras.Model(inputs, keras.layers.Dense(2)(x))\n\nmodel = build()\n"

UNTRACKED = {
    "plain variables": (
        _LAYER + 'model = keras.Sequential([keras.Input((4,)), Scaled(name="scaled"), keras.layers.Dense(2)])\n',
        "self.shift = keras.Variable(0.1 * tf.ones([4]))",
    ),
    "a named Lambda": (
        "def build():\n"
        "    inputs = keras.Input((4,))\n"
        '    inside = keras.layers.Dense(3, name="inside")\n'
        "    inside.build((None, 4))\n"
        "    squashed = keras.layers.Lambda(lambda t: tf.tanh(inside(t)), output_shape=(3,))\n"
        "    x = squashed(inputs)\n" + _OUTPUT,
        "squashed.inside = inside",
    ),
    "a Lambda that is called at once": (
        "def build():\n"
        "    inputs = keras.Input((4,))\n"
        '    inside = keras.layers.Dense(3, name="inside")\n'
        "    inside.build((None, 4))\n\n"
        "    def squash(t):\n"
        "        return tf.tanh(inside(t))\n\n"
        "    x = keras.layers.Lambda(squash, output_shape=(3,))(inputs)\n" + _OUTPUT,
        "applied.inside = inside\n    x = applied(inputs)",
    ),
}


@pytest.mark.parametrize("form", UNTRACKED)
def test_what_keras_does_not_track_is_tracked_after_the_edit(form: str, loaded: Any) -> None:
    body, written = UNTRACKED[form]
    text = HEAD + body
    before, *batch = loaded(text)

    [finding] = [each for each in tb_gradflow.explain(before, *batch).findings if each.severity != "info"]

    assert finding.cause == "untracked_variable"
    assert finding.edit is not None
    assert written in finding.edit.after
    after, *batch = loaded(_edited(text, finding.edit))
    assert len(after.trainable_variables) == len(before.trainable_variables) + 2
    assert tb_gradflow.explain(after, *batch).healthy


def test_no_variable_of_keras_where_the_class_is_not_a_layer(loaded: Any) -> None:
    """Keras would not track it either."""
    body = _LAYER.replace("(keras.layers.Layer)", "").replace("super().__init__(**kwargs)", "pass")
    body = body.replace("def call", "def __call__").replace("**kwargs", "")
    model = (
        "class Outer(keras.Model):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.inner, self.last = Scaled(), keras.layers.Dense(2)\n\n"
        "    def call(self, x):\n"
        "        return self.last(self.inner(x))\n\n"
        "model = Outer()\n"
    )

    [finding] = [each for each in tb_gradflow.explain(*loaded(HEAD + body + model)).findings if each.variables]

    assert (finding.cause, finding.edit) == ("untracked_variable", None)


def test_a_layer_that_each_step_creates_is_created_once_after_the_edit(loaded: Any) -> None:
    text = HEAD + (
        "class Net(keras.Model):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        '        self.last = keras.layers.Dense(2, name="last")\n\n'
        "    def squeeze(self, x):\n"
        '        return keras.layers.Dense(3, activation="tanh", name="squeeze")(x)\n\n'
        "    def call(self, x):\n"
        "        return self.last(self.squeeze(x))\n\n"
        "model = Net()\n"
    )
    before, *batch = loaded(text)
    before.run_eagerly = True

    [finding] = [each for each in tb_gradflow.explain(before, *batch).findings if each.severity == "error"]

    assert finding.cause == "untracked_variable"
    assert finding.edit is not None
    assert 'self.squeeze_layer = keras.layers.Dense(3, activation="tanh", name="squeeze")' in finding.edit.after
    after, *batch = loaded(_edited(text, finding.edit))
    assert len(after.trainable_variables) == 4
    assert tb_gradflow.explain(after, *batch).healthy
