"""What is said of a step that was not usual, from what was measured of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tb_gradflow.analyse.causes.strength.loss_spike import findings_of_spikes
from tb_gradflow.analyse.over_time.spikes import SpikeSeen, spikes_of
from tb_gradflow.record.experiments import Changed
from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import MovedWeights, Spike, SpikeTrial, StepValues, Trace
from tests.analyse.builders import FINE, Graph


def one_loss() -> Trace:
    graph = Graph()
    graph.target(graph.op("Mul", graph.variable("dense/kernel")))
    graph.ask("dense/kernel", FINE)
    return graph.trace()


TRACE = one_loss()

STEP = 700

Losses = Mapping[Changed, float | None]


def spike(losses: Losses, moved: tuple[MovedWeights, ...] = (), rates: tuple[float, ...] = ()) -> Spike:
    """A loss of 40 where 0.4 was usual, and what it was when something was different."""
    trials = [SpikeTrial(changed, loss, 1.0) for changed, loss in losses.items() if changed != "rows"]
    if "rows" in losses:
        trials.append(SpikeTrial("rows", losses["rows"], 1.0, (3,), 4))
    return Spike(
        target=0,
        of="loss",
        loss=40.0,
        usual_loss=0.4,
        norm=20.0,
        usual_norm=1.0,
        highest=0.7,
        limit=4.0,
        steps=512,
        losses=(0.4,),
        norms=(1.1,),
        earlier=12,
        trials=tuple(trials),
        moved=moved,
        rates=rates,
    )


def seen(known: Spike, later: tuple[float, ...] = ()) -> SpikeSeen:
    return SpikeSeen(STEP, TRACE, known, later)


def finding(known: SpikeSeen, step: int = STEP) -> Finding:
    [found] = findings_of_spikes(TRACE, [known], step)
    return found


FAR = MovedWeights(0, size=2.0, change=1.9, largest=0.3, count=100)
NEAR = MovedWeights(0, size=2.0, change=0.1, largest=0.02, count=100)
JUMP = MovedWeights(0, size=2.0, change=30.0, largest=30.0, count=100)

BY_WEIGHTS: Losses = {"nothing": 40.0, "weights": 0.4, "batch": 30.0}

KINDS: dict[str, tuple[Spike, str]] = {
    "a row": (spike({"nothing": 40.0, "weights": 39.0, "rows": 0.5, "batch": 0.4}), "rows"),
    "a row, and nothing else was tried": (spike({"nothing": 40.0, "rows": 0.5}), "rows"),
    "the batch": (spike({"nothing": 40.0, "weights": 39.0, "batch": 0.4}), "batch"),
    "the batch, which is not finite with other weights": (
        spike({"nothing": 40.0, "weights": None, "batch": 0.4}),
        "batch",
    ),
    "the weights": (spike(BY_WEIGHTS, moved=(FAR, FAR)), "update"),
    "the weights, although a row makes most of it": (spike({**BY_WEIGHTS, "rows": 3.0}, moved=(FAR, FAR)), "update"),
    "the weights, and the rate has grown": (spike(BY_WEIGHTS, moved=(FAR, FAR), rates=(0.1, 1.0)), "rate"),
    "the weights, and the rate has fallen": (spike(BY_WEIGHTS, moved=(FAR, FAR), rates=(0.1, 0.01)), "update"),
    "one variable": (spike(BY_WEIGHTS, moved=(FAR, NEAR)), "variable"),
    "one element": (spike(BY_WEIGHTS, moved=(JUMP, NEAR)), "element"),
    "neither the weights nor the batch alone": (spike({"nothing": 40.0, "weights": 0.4, "batch": 0.4}), "unknown"),
    "both": (spike({"nothing": 40.0, "weights": 39.0, "batch": 30.0}), "unknown"),
    "nothing that repeats": (spike({"nothing": 0.4, "weights": 0.4, "batch": 0.4}), "not_reproducible"),
    "nothing that repeats, with other random numbers": (replace(spike({"nothing": 0.4}), draws=True), "unknown"),
    "it could not run again": (spike({}), "unknown"),
    "no weights were kept": (spike({"nothing": 40.0}), "unknown"),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_experiments_tell_what_it_was(name: str) -> None:
    known, kind = KINDS[name]

    found = finding(seen(known))

    assert seen(known).kind == kind
    assert "In step 700, the loss was 40, 100 times what is usual" in found.message
    assert ("Why is not known" in found.message) == (kind == "unknown")
    assert found.fix
    assert found.examples == ((3,) if kind == "rows" else None)


def test_it_is_a_warning_where_the_training_suffers() -> None:
    known = spike({"nothing": 40.0, "weights": 39.0, "batch": 0.4})

    assert finding(seen(known)).severity == "info"
    assert finding(seen(known, (0.5, 0.4, 0.6))).severity == "info"
    assert finding(seen(known, (4.0, 5.0, 3.0))).severity == "warning"
    assert finding(seen(known, (4.0, float("nan"), 3.0))).severity == "info"
    assert "It has lasted" in finding(seen(known, (4.0, 5.0, 3.0))).message
    assert "got over it" in finding(seen(known, (0.5, 0.4, 0.6))).message


def test_rows_are_a_warning_where_they_are_extraordinary() -> None:
    known = spike({"nothing": 40.0, "weights": 39.0, "rows": 0.5, "batch": 0.4})

    assert finding(seen(known)).severity == "info"
    assert finding(seen(replace(known, loss=400.0))).severity == "warning"


def test_a_gradient_without_a_loss_says_that_the_loss_was_usual() -> None:
    found = finding(seen(replace(spike({"nothing": 0.5}), of="gradient", loss=0.5, limit=10.0)))

    assert "the norm of the gradient of the loss was 20, 20 times what is usual" in found.message
    assert "the loss, 0.5, was still usual" in found.message


def test_later_steps_of_the_run_say_since_when() -> None:
    assert finding(seen(spike({"nothing": 40.0}))).began is None
    assert finding(seen(spike({"nothing": 40.0})), step=900).began == STEP


def test_only_the_losses_of_later_steps_count_as_later() -> None:
    values = StepValues(STEP, -1, (), spike=spike({"nothing": 40.0}))
    losses: Any = [(step, TRACE, (float(step),)) for step in (600, 700, 800, 900)]

    [found] = spikes_of([(TRACE, values), (TRACE, StepValues(800, -1, ()))], losses)

    assert (found.step, found.later) == (STEP, (800.0, 900.0))
