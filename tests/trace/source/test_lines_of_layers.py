"""The line of an op that Keras creates: where its layer is created, or its loss is given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import keras
import numpy as np
import pytest
from keras import layers

import tb_gradflow
from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.analyse.user_code.definitions import creation_of_layer
from tb_gradflow.record.schema import Passage, Trace

DEAD = keras.initializers.Constant(-99.0)


def _dense(width: int, name: str) -> Any:
    return layers.Dense(width, activation="relu", bias_initializer=DEAD, name=name)


def in_a_list() -> Any:
    return keras.Sequential(
        [
            layers.Dense(3, name="first"),
            layers.Dense(3, activation="relu", bias_initializer=DEAD, name="dead_one"),
            layers.Dense(1),
        ]
    )


def of_a_function_that_is_given_the_name() -> Any:
    inputs = keras.Input((4,))
    h = _dense(3, "dead_two")(inputs)
    return keras.Model(inputs, layers.Dense(1)(h))


def with_a_computed_name() -> Any:
    model = keras.Sequential([keras.Input((4,))])
    for number in range(2):
        model.add(layers.Dense(3, activation="relu", bias_initializer=DEAD, name=f"dead_block_{number}"))
    model.add(layers.Dense(1, name="after_dead_blocks"))  # tells this file from the others of the process
    return model


def test_a_call_that_only_looks_a_layer_up_does_not_create_it() -> None:
    model = of_a_loop_without_names()
    assert model.get_layer("dead_by_number_1").units == model.get_layer("dead_by_number_2").units

    assert told_of(model, "mse").source is None


@pytest.mark.parametrize(
    ("source", "name", "line"),
    [
        ("model = keras.Sequential([library.network(), layers.Dense(3)])", "dense_1", None),
        ("def build():\n    return [library.network(), layers.Dense(3)]\nmodel = build()", "dense_1", None),
        ("model = keras.Sequential([layers.Dense(3) for _ in range(2)])", "dense_1", 1),
        ("def block():\n    return layers.Dense(3)\nmodel = [block(), block()]", "dense_1", 2),
        ("def block():\n    return layers.Dense(3)\nmodel = [block() for _ in range(2)]", "dense_1", 2),
        ("class Block:\n    def build(self):\n        self.d = layers.Dense(3)\na, b = Block(), Block()", "dense_1", 3),
        ("def head(tag):\n    return layers.Dense(1, name=f'{tag}')\na, b = head('x'), head('y')", "dense_1", None),
        ("def block():\n    return layers.Dense(3)\nmodel = [block() for _ in range(2)]", "of_a_library", None),
    ],
)
def test_the_only_call_of_a_class_creates_several_layers_where_it_is_run_again(
    source: str, name: str, line: int | None
) -> None:
    known = [SimpleNamespace(name=each, type="Dense") for each in ("dense", "dense_1", "of_a_library")]
    program = (Code(Passage("program.py", 1, source)),)

    created = creation_of_layer(program, cast("Trace", SimpleNamespace(layers=known)), name)

    assert (None if created is None else created.source.line) == line


def of_a_loop_without_names() -> Any:
    first = [_dense(3, name) for name in ("dead_by_number_1", "dead_by_number_2")]
    return keras.Sequential([keras.Input((4,)), *first, layers.Dense(1)])


def told_of(model: Any, loss: Any) -> Any:
    model.compile("adam", loss)
    return tb_gradflow.explain(model, np.ones((4, 4)), np.ones((4, 1))).findings[0]


@pytest.mark.parametrize(
    ("build", "line"),
    [
        (in_a_list, 'layers.Dense(3, activation="relu", bias_initializer=DEAD, name="dead_one"),'),
        (of_a_function_that_is_given_the_name, 'h = _dense(3, "dead_two")(inputs)'),
        (
            with_a_computed_name,
            'model.add(layers.Dense(3, activation="relu", bias_initializer=DEAD, name=f"dead_block_{number}"))',
        ),
    ],
)
def test_of_an_op_of_a_layer_that_keras_calls_the_line_that_creates_it(build: Any, line: str) -> None:
    finding = told_of(build(), "mse")

    assert finding.cause == "dead_relu"
    assert finding.source is not None
    assert finding.source.code == line


def test_of_an_op_of_a_loss_that_keras_calls_the_line_that_compiles_the_model() -> None:
    model = keras.Sequential([layers.Dense(3), layers.Dense(1, name="of_a_cosine")])

    finding = told_of(model, keras.losses.CosineSimilarity())

    assert finding.cause == "degenerate_normalisation"
    assert finding.source is not None
    assert finding.source.code == 'model.compile("adam", loss)'
