"""Differences that are put into real trainings are found in the step, direction and op where they begin; changes that
are none are not. `python -m tests.trace.divergence.contact` tries all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tb_gradflow import open_log
from tb_gradflow.api import diverge
from tests.trace.divergence.injections import INJECTIONS, SAME, Injection, Program
from tests.trace.divergence.programs import BATCH, Change, perceptron
from tests.trace.divergence.recorded import Runs, verdict

# One of each kind; the others take minutes.
CHOSEN = (
    *("one weight", "one weight of a loop", "weight set later", "dropout's seed", "one row of the batch", "a label"),
    *("dropout rate", "dtype of a layer", "a layer more", "a constant", "tanh and sigmoid", "leak", "label smoothing"),
    *("a stopped gradient", "a custom gradient", "rate set later", "epsilon", "norm's momentum"),
)
CHOSEN_SAME = ("twice", "XLA, a loop", "eager", "renamed layers", "an identity", "other steps recorded")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("injection", [pytest.param(each, id=each.name) for each in INJECTIONS if each.name in CHOSEN])
def test_a_difference_is_found_where_it_begins(injection: Injection, runs: Runs) -> None:
    found = runs.of(injection.program, injection.a, injection.b)

    assert not verdict(injection, found), str(found)


@pytest.mark.parametrize(
    ("program", "a", "b"), [pytest.param(*each, id=name) for name, *each in SAME if name in CHOSEN_SAME]
)
def test_a_change_that_only_rounds_differently_is_none(program: Program, a: Change, b: Change, runs: Runs) -> None:
    found = runs.of(program, a, b)

    assert not found.differs, str(found)


def test_settings_that_the_logs_hold_are_listed(runs: Runs) -> None:
    [injection] = [each for each in INJECTIONS if each.name == "epsilon"]

    told = runs.of(injection.program, injection.a, injection.b).to_dict()

    assert {"what": "optimizer: epsilon", "a": "1e-07", "b": "0.0001"} in told["settings"]


def test_a_resumed_training_without_its_optimizer_differs_in_its_first_update(tmp_path: Path) -> None:
    """Weights are restored, and the moments of Adam are not."""
    models: list[Any] = []
    half = 3 * BATCH

    def restore(model: Any) -> None:
        model.set_weights(models[0].get_weights())
        model.optimizer.iterations.assign(3)

    perceptron(tmp_path / "whole", Change(dropout=0.0))
    first = Change(dropout=0.0, built=models.append, data=lambda x, y: (x[:half], y[:half]))
    perceptron(tmp_path / "resumed", first)
    perceptron(tmp_path / "resumed", Change(dropout=0.0, built=restore, data=lambda x, y: (x[half:], y[half:])))

    found = diverge(open_log(tmp_path / "whole"), open_log(tmp_path / "resumed"))

    assert (found.step, found.direction) == (3, "update"), str(found)
    assert "Up to step 2, everything agrees. The gradients agree." in str(found)


def test_steps_that_are_not_recorded_are_not_blamed(runs: Runs) -> None:
    """A weight is set before step 3, and only every second step of the run is recorded."""
    [injection] = [each for each in INJECTIONS if each.name == "weight set later"]
    sparse = replace(injection.b, update_freq=2)

    found = runs.of(injection.program, injection.a, sparse)

    assert (found.step, found.direction) == (4, "forward")
    assert "No step between 2 and 4 is recorded in both runs: it may have begun in one of them." in " ".join(
        str(found).split()
    )
