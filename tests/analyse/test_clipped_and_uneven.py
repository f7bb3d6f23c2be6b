"""What is said of clips that leave almost nothing, of layers that move in another way, and of skipped steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.over_time.run_context import RunContext
from tb_gradflow.analyse.over_time.unmoved import Piece
from tb_gradflow.analyse.over_time.updates import Skipped, clips_of, moves_of, skipped_of
from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import FORMAT, Clip, LossScale, Movement, Optimizer, Session, Trace
from tests.analyse.builders import Graph, Row

STEP = 40
SGD = Optimizer("SGD", False, False, "", False, 1, False)
ADAM = replace(SGD, type="Adam", memory=True, options=("epsilon=1e-07",))


@dataclass(frozen=True)
class Layer:
    """A matrix of 10 by 10, whose elements have a size of 0.1.

    Attributes:
        share: By which part of its size each step changes it.
        gradient: The norm of its gradient.
        rate, decay: Of its optimizer.
        rounded: How many elements do not move, because the update is rounded away.
    """

    share: float = 1e-3
    gradient: float = 0.1
    rate: float = 0.01
    decay: float = 0.0
    rounded: float = 0.0


def traced(layers: Mapping[str, Layer]) -> Graph:
    graph = Graph()
    ops = [graph.op("MatMul", graph.variable(name, shape=(10, 10)), shape=(4, 10)) for name in layers]
    graph.target(graph.op("AddN", *ops), loss=1.0)
    for place, (name, layer) in enumerate(layers.items()):
        graph.ask(name, (layer.gradient, layer.gradient, layer.gradient / 10, 0.0, 0.0, 0.0))
        graph.weights[place] = (1.0, layer.share)
    return graph


def trace_of(graph: Graph, layers: Mapping[str, Layer], optimizer: Optimizer) -> Trace:
    movements = tuple(
        Movement(place, place, graph.row((0.0, 0.0, 0.0, layer.rounded, layer.rounded, layer.rate)), layer.decay, "")
        for place, layer in enumerate(layers.values())
    )
    optimizers = (optimizer,) * len(layers)
    return replace(graph.trace(), optimizers=optimizers, movements=movements)


def findings(
    layers: Mapping[str, Layer],
    optimizer: Optimizer = SGD,
    *,
    clip: tuple[str, float, Row] | None = None,
    steps: int = STEP,
    began: float = 1.0,
) -> list[Finding]:
    """Of a training in which all recorded steps were alike; `clip` is its name, limit and measurement."""
    graph = traced(layers)
    clips = () if clip is None else (Clip(clip[0], clip[1], tuple(range(len(layers))), graph.row(clip[2]), 0),)
    trace = replace(trace_of(graph, layers, optimizer), clips=clips)
    gradients, variables = graph.numbers(), graph.weight_numbers()
    piece = Piece(trace, np.stack([variables] * steps), lambda: np.stack([gradients] * steps), tuple(range(steps)))
    context = RunContext(clips=clips_of([piece]), moves=lambda: moves_of([piece]), began={trace.targets[0].name: began})
    session = Session(FORMAT, "0000000000000", "0", "2.21.0", "3.15.0", "model", ())
    known = diagnose(trace, session, gradients, variables, tuple(graph.losses), steps - 1, context=context)
    return list(known.findings)


def cut(before: float, after: float) -> Row:
    return (0.0, 0.0, before, after, 0.0, 0.0)


ALIKE = {name: Layer() for name in ("one", "two", "three", "four")}
STARVED = {name: Layer(share=1e-8) for name in ALIKE}


def test_a_clip_that_leaves_almost_nothing_is_why_hardly_anything_moves() -> None:
    [finding] = findings(STARVED, clip=("global_clipnorm", 1e-6, cut(0.2, 1e-6)))

    assert (finding.cause, finding.severity) == ("gradient_clipped", "warning")
    assert "`global_clipnorm=1e-06` of SGD cuts the gradient in all 40 recorded steps" in finding.message
    assert "from a norm of 0.2 to 1e-06" in finding.message
    assert "without the clip it would be 0.002" in finding.message
    assert finding.fix == "Raise the limit, to 0.1: that gives steps of 0.001."


def test_elements_that_do_not_move_because_of_it_are_not_told_again() -> None:
    still = {name: replace(layer, rounded=90.0) for name, layer in STARVED.items()}

    assert [each.cause for each in findings(still)] == ["gradient_not_applied"]
    assert [each.cause for each in findings(still, clip=("clipnorm", 1e-6, cut(0.2, 1e-6)))] == ["gradient_clipped"]


def test_it_is_information_where_the_loss_has_fallen() -> None:
    [finding] = findings(STARVED, clip=("global_clipnorm", 1e-6, cut(0.2, 1e-6)), began=3.0)

    assert (finding.cause, finding.severity) == ("gradient_clipped", "info")


def test_a_clip_is_not_the_reason_if_hardly_anything_moved_without_it() -> None:
    [finding] = findings(STARVED, clip=("global_clipnorm", 0.01, cut(0.2, 0.01)))

    assert finding.severity == "info"
    assert "without the clip" not in finding.message.partition("counts for")[0]


@pytest.mark.parametrize("steps", [10, 19])
def test_a_few_steps_that_are_all_cut_say_nothing(steps: int) -> None:
    assert not findings(ALIKE, clip=("clipnorm", 0.01, cut(0.2, 0.01)), steps=steps)


def test_a_clip_that_cuts_to_a_half_is_usual() -> None:
    assert not findings(ALIKE, clip=("clipnorm", 0.1, cut(0.2, 0.1)))


def test_adam_does_not_depend_on_the_factor_of_a_gradient() -> None:
    [finding] = findings(ALIKE, ADAM, clip=("clipnorm", 1e-3, cut(0.2, 1e-3)))

    assert finding.severity == "info"
    assert "Adam divides by the size of the gradient, so this hardly changes the length of its steps" in finding.message


def test_adam_stands_still_if_less_than_its_epsilon_is_left() -> None:
    [finding] = findings(STARVED, ADAM, clip=("clipnorm", 1e-9, cut(0.2, 1e-9)))

    assert (finding.cause, finding.severity) == ("gradient_clipped", "warning")
    assert "its epsilon, 1e-07" in finding.message


def test_a_list_with_a_huge_gradient_that_is_not_applied() -> None:
    [finding] = findings(STARVED, clip=("tf.clip_by_global_norm", 1.0, cut(1e5, 1.0)))

    assert "Of that norm, only 0.2 is that of the gradients that are applied." in finding.message
    assert finding.fix.startswith("Clip only the gradients that are applied")


@pytest.mark.parametrize(
    ("layer", "optimizer", "reason", "severity"),
    [
        (
            Layer(share=1e-6, rate=1e-5),
            ADAM,
            "learning rate: Adam applies 1e-05 to it, and the others get 0.01",
            "info",
        ),
        (Layer(share=0.5, rate=5.0), SGD, "learning rate: SGD applies 5 to it, and the others get 0.01", "warning"),
        (Layer(share=1e-6, gradient=1e-4), SGD, "gradient, to which updates of SGD are in proportion", "warning"),
        (Layer(share=0.3, decay=40.0), ADAM, "weight decay, which takes 0.4 of it away in each step", "warning"),
    ],
)
def test_the_reason_why_a_layer_moves_otherwise(layer: Layer, optimizer: Optimizer, reason: str, severity: str) -> None:
    [finding] = findings({**ALIKE, "odd": layer}, optimizer)

    assert (finding.cause, finding.severity, finding.variables) == ("uneven_updates", severity, ("odd",))
    assert f"The reason is the {reason}" in finding.message or f"The reason is {reason}" in finding.message


@pytest.mark.parametrize(
    "layer",
    [Layer(share=2e-5, rate=1e-4), Layer(share=0.05, rate=0.5), Layer(share=1e-6), Layer(share=0.5)],
    ids=["fifty times less", "fifty times more", "less, without a reason", "more, without a reason"],
)
def test_no_finding_without_a_hundred_times_and_a_reason(layer: Layer) -> None:
    assert not findings({**ALIKE, "odd": layer}, ADAM)


def test_the_others_are_two_at_least() -> None:
    assert not findings({"one": Layer(), "odd": Layer(share=1e-6, rate=1e-5)}, ADAM)


def scaled(*updates: float, first: int = 0) -> Piece:
    """Recorded steps with a loss scale that is halved in each step without an update."""
    layers = {"one": Layer()}
    graph = traced(layers)
    trace = replace(trace_of(graph, layers, SGD), loss_scales=(LossScale(0, graph.row((0.0,) * 6)),))
    rows = np.stack([graph.numbers()] * len(updates))
    row = trace.loss_scales[0].row
    rows[:, row, 2], rows[:, row, 3] = 8.0, updates
    variables = np.stack([graph.weight_numbers()] * len(updates))
    return Piece(trace, variables, lambda: rows, tuple(range(first, first + len(updates))))


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([scaled(1, 2, 3)], None),
        ([scaled(1, 2, 2, 2)], (2, 2)),
        ([scaled(0, 0, 0)], (0, 3)),
        ([scaled(5, 5, 5)], (1, 2)),
        ([scaled(2, 2, first=3), scaled(1, 2, 2)], (2, 3)),
    ],
    ids=["none", "the last ones", "all", "of another training", "in two chunks"],
)
def test_the_steps_that_were_skipped_up_to_the_last_one(pieces: list[Piece], expected: tuple[int, int] | None) -> None:
    found = skipped_of(pieces)

    assert (None if found is None else (found.since, found.steps)) == expected


@pytest.mark.parametrize(
    ("steps", "scale", "told"), [(16, 2.0**20, "initial_scale"), (40, 0.5, "see the other findings")]
)
def test_more_skipped_steps_than_the_default_needs_are_a_warning(steps: int, scale: float, told: str) -> None:
    layers = {"one": Layer()}
    graph = traced(layers)
    trace = trace_of(graph, layers, SGD)
    session = Session(FORMAT, "0000000000000", "0", "2.21.0", "3.15.0", "model", ())
    known = [
        diagnose(
            trace,
            session,
            graph.numbers(),
            graph.weight_numbers(),
            (1.0,),
            50,
            context=RunContext(skipped=Skipped(0, 51 - number, number, scale)),
        )
        for number in (steps, 15)
    ]

    [finding] = known[0].findings
    assert (finding.cause, finding.severity) == ("steps_skipped", "warning")
    assert f"no update in the {steps} steps from {51 - steps} to 50" in finding.message
    assert told in finding.fix
    assert not known[1].findings
