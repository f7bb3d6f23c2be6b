"""Which hyperparameters broken runs share, and when that is no chance."""

from __future__ import annotations

import random

import pytest

from tb_gradflow.serve.runs.shared_settings import shared_settings, varying
from tb_gradflow.serve.runs.standing import Health, Standing
from tb_gradflow.serve.terminal.standing_text import lines_of
from tb_gradflow.serve.terminal.text import Look
from tb_gradflow.store.hyperparameters import Value


def run(health: Health, cause: str = "", **settings: Value) -> Standing:
    return Standing(health, "", cause, hyperparameters=settings)


def broken(number: int, cause: str = "exp_overflow", **settings: Value) -> list[Standing]:
    return [run("error", cause, **settings) for _ in range(number)]


def healthy(number: int, **settings: Value) -> list[Standing]:
    return [run("healthy", "", **settings) for _ in range(number)]


def test_a_setting_that_all_broken_runs_have_and_no_healthy_one_is_told() -> None:
    runs = [
        *broken(6, lr=0.1, seed=1),
        *broken(6, lr=0.3, seed=2),
        *healthy(20, lr=0.01, seed=1),
        *healthy(20, lr=0.05),
    ]

    assert shared_settings(runs) == ["All 12 broken runs have `lr` ≥ 0.1; none of the 40 healthy ones does."]


def test_it_is_told_how_many_healthy_ones_have_it_too() -> None:
    runs = [*broken(6, lr=0.1), *broken(6, lr=0.3), *healthy(3, lr=0.2), *healthy(37, lr=0.01)]

    assert shared_settings(runs) == ["All 12 broken runs have `lr` ≥ 0.1; so do 3 of the 40 healthy ones."]


@pytest.mark.parametrize(
    ("value", "other", "said"),
    [(8, 64, "≤ 8"), ("sgd", "adam", "= sgd"), (True, False, "= true"), (1e-5, 1e-7, "≥ 1e-05")],
)
def test_every_kind_of_value_is_compared_as_it_can_be(value: Value, other: Value, said: str) -> None:
    assert shared_settings([*broken(9, x=value), *healthy(9, x=other)]) == [
        f"All 9 broken runs have `x` {said}; none of the 9 healthy ones does."
    ]


def test_runs_that_broke_for_different_reasons_are_compared_by_reason() -> None:
    runs = [
        *broken(8, "exp_overflow", steepness=1000, units=4),
        *broken(8, "dead_relu", steepness=1, units=64),
        *healthy(8, steepness=1, units=4),
        *healthy(8, steepness=2, units=8),
    ]

    assert shared_settings(runs) == [
        "All 8 runs with dead relu have `units` ≥ 64; none of the 16 healthy ones does.",
        "All 8 runs with exp overflow have `steepness` ≥ 1000; none of the 16 healthy ones does.",
    ]


@pytest.mark.parametrize("seed", range(40))
def test_chance_is_not_told(seed: int) -> None:
    """Ten hyperparameters by lot: with three runs of each kind some of them separate nearly always."""
    drawn = random.Random(seed)
    runs = [
        Standing(health, "", "dead_relu", hyperparameters={f"p{number}": drawn.random() for number in range(10)})
        for health in ("error", "error", "error", "healthy", "healthy", "healthy")
    ]

    assert shared_settings(runs) == []


def test_by_lot_it_is_told_as_seldom_as_it_promises() -> None:
    drawn = random.Random(0)
    told = 0
    for _ in range(400):
        settings = [{f"p{number}": drawn.random() for number in range(4)} for _ in range(12)]
        runs = [
            Standing("error" if number < 4 else "healthy", "", "dead_relu", hyperparameters=each)
            for number, each in enumerate(settings)
        ]
        told += bool(shared_settings(runs))

    assert told <= 0.05 * 400 * 1.5


@pytest.mark.parametrize(
    "runs",
    [
        [],
        healthy(20, lr=0.1),
        broken(20, lr=0.1),
        [*broken(20), *healthy(20, lr=0.1)],
        [*broken(19, lr=0.1), *broken(1), *healthy(20, lr=0.01)],
        [*broken(20, lr=0.1), *healthy(20, lr=0.1)],
        [*broken(20, lr=0.1), *[run("unknown", lr=0.01) for _ in range(20)]],
    ],
    ids=["none", "no broken", "no healthy", "not logged", "not by all", "the same", "nothing known of others"],
)
def test_where_nothing_is_shared_nothing_is_told(runs: list[Standing]) -> None:
    assert shared_settings(runs) == []


def test_columns_are_those_in_which_runs_differ_the_telling_ones_first() -> None:
    runs = [*broken(9, a=1, lr=0.1, batch=32), *healthy(9, a=2, lr=0.01, batch=32), *healthy(9, a=1, lr=0.01, batch=32)]
    said = shared_settings(runs)

    assert varying(runs, said) == ["lr", "a"]
    text = list(lines_of([(f"run{number}", each) for number, each in enumerate(runs)], Look(width=100, colour=False)))
    assert text[1] == "All 9 broken runs have lr ≥ 0.1; none of the 18 healthy ones does."
    assert text[3].split() == ["run", "since", "step", "loss", "recorded", "lr", "a", "worst", "finding"]
    assert text[4].split()[:4] == ["error", "run0", "0.1", "1"]
