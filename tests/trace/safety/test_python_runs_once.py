"""Programs made by chance whose steps do more in Python than computing: a user's Python code runs as often, in the same
order and with the same results with the recorder as without it, and the training has the same bits.

`TB_GRADFLOW_PROGRAMS=1000` tries so many of each kind of training; without it the same few are tried each time.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trace.python_programs import KINDS, ROWS, Kind, Recipe, outcome
from tests.trace.python_side import BETWEEN, INGREDIENTS

PROGRAMS = int(os.environ.get("TB_GRADFLOW_PROGRAMS", "0"))
FEW = 5

OPTIONS = st.fixed_dictionaries(
    {
        "update_freq": st.sampled_from(["auto", "auto", 1, 3, 10**9]),
        "catch_nonfinite": st.sampled_from([True, True, True, False]),
        "tensors": st.sampled_from(["all", "all", "layers", "variables"]),
        "terms": st.sampled_from([False, False, False, True]),
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


@pytest.mark.parametrize("name", list(KINDS))
def test_a_program_does_what_it_does_without_the_recorder(name: str) -> None:
    kind = KINDS[name]

    @settings(
        max_examples=PROGRAMS or FEW,
        derandomize=not PROGRAMS,
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
