"""The line of an op that Keras creates: where its layer is created, or its loss is given."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

import tb_gradflow

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
    model.add(layers.Dense(1))
    return model


def test_a_call_that_only_looks_a_layer_up_does_not_create_it() -> None:
    model = of_a_loop_without_names()
    assert model.get_layer("dead_by_number_1").units == model.get_layer("dead_by_number_2").units

    assert told_of(model, "mse").source is None


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
    model = keras.Sequential([layers.Dense(3), layers.Dense(1)])

    finding = told_of(model, keras.losses.CosineSimilarity())

    assert finding.cause == "degenerate_normalisation"
    assert finding.source is not None
    assert finding.source.code == 'model.compile("adam", loss)'
