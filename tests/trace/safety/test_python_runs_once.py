"""Programs made by chance whose steps do more in Python than computing: a user's Python code runs as often, in the same
order and with the same results with the recorder as without it, and the training has the same bits.

`TB_GRADFLOW_PROGRAMS=1000` tries so many of each kind of training; without it the same few are tried each time.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tb_gradflow
from tests.trace.python_programs import KINDS, ROWS, Kind, Recipe, outcome
from tests.trace.python_side import BETWEEN, INGREDIENTS

PROGRAMS = int(os.environ.get("TB_GRADFLOW_PROGRAMS", "0"))
FEW = 2

OPTIONS = st.fixed_dictionaries(
    {
        "update_freq": st.sampled_from(["auto", "auto", 1, 3, 10**9]),
        "catch_nonfinite": st.sampled_from([True, True, True, False]),
        "tensors": st.sampled_from(["all", "all", "layers", "variables"]),
        "examples": st.sampled_from([False, False, False, True]),
    }
)


def recipes(kind: Kind) -> Any:
    names = [name for name, each in INGREDIENTS.items() if each.in_xla or not kind.in_xla]
    few = st.lists(st.sampled_from(names), max_size=2, unique=True)
    more = st.lists(st.sampled_from([*names, *BETWEEN]), max_size=2, unique=True) if kind.fits else few
    return st.builds(
        Recipe,
        layer=few.map(tuple),
        loss=st.one_of(more, st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)).map(tuple),
        nested_layer=st.sampled_from([False, False, False, True]),
        own_step=st.sampled_from([True, True, False]),
        returns=st.sampled_from([True, True, False]),
        last_rows=st.sampled_from([ROWS, ROWS, 5]),
        options=OPTIONS,
    )


@pytest.mark.parametrize("name", KINDS)
def test_a_program_does_what_it_does_without_the_recorder(name: str) -> None:
    kind = KINDS[name]

    @settings(
        max_examples=PROGRAMS or FEW,
        derandomize=not PROGRAMS,
        phases=[Phase.generate, Phase.shrink] if PROGRAMS else [Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(recipes(kind))
    def compare(recipe: Recipe) -> None:
        assert_harmless(kind, recipe)

    compare()


def assert_harmless(kind: Kind, recipe: Recipe) -> None:
    plain, recorded = (outcome(kind, recipe, recorded=each) for each in (False, True))
    assert recorded.events == plain.events
    assert recorded.outputs == plain.outputs
    assert recorded.weights == plain.weights
    assert recorded.kept == plain.kept
    assert recorded.printed == plain.printed


def test_terms_are_measured_where_the_step_calls_a_function(tmp_path: Path) -> None:
    weight = tf.Variable(tf.ones((3, 1)))
    nested = tf.function(lambda x: x * 1.0)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(nested(x @ weight) ** 2) + 0.1 * tf.reduce_sum(weight)
        return tape.gradient(loss, weight)

    watched = tb_gradflow.watch(tmp_path, terms=True)(step)
    assert np.all(watched(tf.ones((4, 3))).numpy() == tf.function(step)(tf.ones((4, 3))).numpy())


def test_a_step_with_functions_of_python_rounds_as_without_the_recorder() -> None:
    options = {"update_freq": 3, "tensors": "layers", "examples": True}
    recipe = Recipe(("PyFunction",), ("NumpyFunction",), last_rows=5, options=options)

    assert_harmless(KINDS["watched"], recipe)
