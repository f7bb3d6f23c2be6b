"""The lines of functions of Keras that a functional model calls as layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import ops

import tb_gradflow
from tb_gradflow.trace.source.functional_calls import line_of
from tests.trace.recording import record

HERE = Path(__file__).read_text().splitlines()


@pytest.mark.parametrize(
    "code",
    [
        "from keras import ops\n\n\ndef built(x):\n    return ops.round(x)\n",
        "import keras\n\n\ndef built(x):\n    return keras.ops.round(x)\n",
        "from tensorflow import keras\n\n\ndef built(x):\n    return keras.ops.round(x)\n",
        "import tensorflow as tf\n\n\ndef built(x):\n    return tf.keras.ops.round(x)\n",
        "from keras.ops import round as rounded\n\n\ndef built(x):\n    return rounded(x)\n",
    ],
)
def test_a_call_is_found_by_what_it_calls(tmp_path: Path, code: str) -> None:
    (tmp_path / "model.py").write_text(code)

    found = line_of("keras.ops.round", [str(tmp_path / "model.py")])

    assert found is not None
    assert (found.line, found.function) == (5, "built")
    assert found.code == code.splitlines()[4].strip()


@pytest.mark.parametrize(
    "code",
    [
        "from keras import ops\nx = ops.round(1.5)\ny = ops.round(x)\n",
        "import jax.numpy as ops\nx = ops.round(1.5)\n",
        "from keras import layers, ops\nlayer = layers.Lambda(lambda x: ops.round(x))\n",
        "from keras import ops\n\n\nclass Rounded:\n    def call(self, x):\n        return ops.round(x)\n",
        "from keras import ops\nx = ops.round(\n",
    ],
)
def test_nothing_is_said_where_it_may_be_another_call(tmp_path: Path, code: str) -> None:
    (tmp_path / "model.py").write_text(code)

    assert line_of("keras.ops.round", [str(tmp_path / "model.py")]) is None


def test_a_finding_names_the_line_of_a_function_in_a_functional_model(tmp_path: Path) -> None:
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(8)(inputs)
    count = ops.ceil(keras.layers.Dense(1, name="count")(hidden))
    model = keras.Model(inputs, count + keras.layers.Dense(1)(hidden))
    model.compile("adam", "mse")

    [finding] = tb_gradflow.explain(model, np.ones((4, 4)), np.ones((4, 1))).findings

    assert finding.source is not None
    assert HERE[finding.source.line - 1].strip().startswith("count = ops.ceil(")
    assert finding.edit is not None
    assert "ops.stop_gradient(ops.ceil(value) - value)" in finding.edit.after


def never_called(x: Any) -> Any:
    return ops.matmul(x, x)


def test_what_a_layer_calls_itself_is_no_line_of_the_program(tmp_path: Path) -> None:
    """`Dense` calls the same function."""
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")

    recorded = record(tmp_path, lambda: model, np.ones((4, 4)), np.ones((4, 1)))

    assert recorded.op("MatMul").api == "keras.ops.matmul"
    assert recorded.op("MatMul").source is None
