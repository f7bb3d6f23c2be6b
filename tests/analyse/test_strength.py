"""Vanishing and exploding, measured from the loss."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.magnitude_path import courses_to
from tb_gradflow.record.schema import EAGER
from tests.analyse.builders import FINE, Graph, sized


def chain(*steps: tuple[str, float]) -> Graph:
    """Layers from the loss backwards: the op of each, and how large the gradient is in front of it."""
    graph = Graph()
    op = graph.variable("first/kernel")
    for kind, level in reversed(steps):
        graph.gradient(op, sized(level))
        op = graph.op(kind, op)
    graph.gradient(op, sized(1.0))
    graph.target(op)
    graph.ask("first/kernel", sized(steps[-1][1]))
    return graph


def test_vanishing_adds_up_over_many_layers() -> None:
    """No sigmoid takes a decade; twelve of them take eight."""
    steps = [
        step for k in range(12) for step in (("Sigmoid", 10 ** (-0.7 * (k + 1))), ("MatMul", 10 ** (-0.7 * (k + 1))))
    ]

    finding = chain(*steps).only_finding()

    assert (finding.cause, finding.severity) == ("vanishing_depth", "warning")
    assert finding.op is not None
    assert finding.op.type == "Sigmoid"


@pytest.mark.parametrize(("average", "named"), [("Mean", "MatMul"), ("DivNoNan", "MatMul"), ("Tanh", "Tanh")])
def test_an_average_of_many_elements_does_not_make_a_gradient_vanish(average: str, named: str) -> None:
    steps = [("MatMul", 10 ** (-3.9 - 0.4 * (k + 1))) for k in range(8)]

    finding = chain((average, 10**-3.9), *steps).only_finding()

    assert finding.cause == "vanishing_depth"
    assert finding.op is not None
    assert finding.op.type == named


@pytest.mark.parametrize(("kind", "cause"), [("Tanh", "saturation_sigmoid"), ("Softmax", "saturation_softmax")])
def test_one_op_that_takes_nearly_all_is_saturated(kind: str, cause: str) -> None:
    finding = chain(("Mean", 0.1), (kind, 1e-9), ("MatMul", 1e-9)).only_finding()

    assert finding.cause == cause
    assert finding.op is not None
    assert finding.op.type == kind


def test_growth_over_many_steps_is_a_recurrence() -> None:
    finding = chain(*(("MatMul", 10.0 ** (k + 1)) for k in range(6))).only_finding()

    assert (finding.cause, finding.severity) == ("exploding_recurrence", "warning")
    assert "1.0e6" in finding.message
    assert "recurrent" not in finding.fix


def test_where_a_cell_recurs_its_weights_are_to_be_tamed() -> None:
    graph = chain(*(("MatMul", 10.0 ** (k + 1)) for k in range(6)))
    graph.variables[0] = replace(graph.variables[0], name="lstm/recurrent_kernel")

    assert 'recurrent_initializer="orthogonal"' in graph.only_finding().fix


def test_growth_at_one_division_by_a_length_is_a_zero_vector() -> None:
    graph = Graph()
    vector = graph.variable("vector")
    inverse_length = graph.op("Rsqrt", graph.op("Sum", vector))
    normal = graph.op("Mul", vector, inverse_length)
    graph.gradient(normal, sized(1.0))
    graph.target(graph.op("Sum", normal))
    graph.ask("vector", sized(1e6))

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("normalise_zero_vector", normal)


def test_a_gradient_that_is_small_and_alive_is_no_news() -> None:
    assert chain(("Sigmoid", 0.1), ("MatMul", 1e-6)).diagnose().findings == ()


def test_decades_along_a_way_are_those_between_its_measured_tensors() -> None:
    """An op without a number of its own is passed over, and its share goes to the one that was measured before."""
    graph = Graph()
    first = graph.op("MatMul", graph.variable("kernel"))
    unknown = graph.op("Neg", first)
    last = graph.op("Relu", unknown)
    graph.target(last)
    topology = Topology(graph.trace())

    courses = courses_to(topology.gradient(0), topology.onward, [0.0, 1e-3, 0.0, 0.0], [op.type for op in graph.ops])
    course = courses.to_variable([first], 1e-5)

    assert course["Relu"].total == pytest.approx(3.0)
    assert course["MatMul"].total == pytest.approx(2.0)
    assert course["MatMul"].most[1] == first


def test_the_share_of_an_op_without_a_number_is_its_own_if_it_can_be_flat() -> None:
    """The output of a softmax has none in some steps; the product behind it shrinks nothing."""
    graph = chain(("MatMul", 0.3), ("Softmax", 1e-9), ("MatMul", 1e-9))
    softmax = next(op for op, each in enumerate(graph.ops) if each.type == "Softmax")
    graph.tensors = [each for each in graph.tensors if each.op != softmax]

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("saturation_softmax", softmax)


def test_of_several_users_the_one_is_named_whose_gradient_is_as_large() -> None:
    """A branch beside it, shorter and with a small gradient, need not have made anything grow."""
    graph = Graph()
    x = graph.op("MatMul", graph.variable("kernel"))
    idle = graph.op("Mul", x)
    steep = graph.op("Exp", graph.op("Neg", x))
    both = graph.op("SelectV2", idle, steep)
    graph.target(graph.op("Sum", both))
    for op, size in ((both, 1.0), (steep, 1.0), (idle, 1.0), (steep - 1, 1e9), (x, 1e9)):
        graph.gradient(op, sized(size))
    graph.ask("kernel", sized(1e9))

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("exploding_recurrence", steep)
    assert "it is multiplied by the result of `Exp`" in finding.message


def test_healthy_depth_has_no_finding() -> None:
    graph = chain(("Relu", 0.9), ("MatMul", 0.8))
    graph.ask("first/kernel", FINE)

    assert graph.diagnose().findings == ()


def shifted(kind: str, *, factor_learns: bool | None = None, loss: float = 0.5) -> Graph:
    """A gradient that is there behind one op and eight decades smaller at the variable in front of it."""
    graph = Graph()
    inputs = [graph.variable("layer/weight")]
    if factor_learns is not None:
        inputs.append(graph.op("Reshape", graph.variable("layer/scale")))
    op = graph.op(kind, *inputs)
    graph.gradient(op, sized(0.1))
    graph.target(graph.op("Sum", op), loss=loss)
    graph.ask("layer/weight", sized(1e-9))
    if factor_learns is not None:
        graph.ask("layer/scale", sized(0.1 if factor_learns else 0.0, zeros=0.0 if factor_learns else 1.0))
    return graph


def test_a_shift_whose_gradient_cancels_over_all_elements_has_no_influence() -> None:
    """The normalisation that takes it out again may be some layers on."""
    finding = shifted("AddV2").only_finding()

    assert (finding.cause, finding.severity) == ("shift_invariant_parameter", "info")


@pytest.mark.parametrize(
    ("between", "told"), [("StridedSlice", "shift_invariant_parameter"), ("Mul", "vanishing_depth")]
)
def test_a_shift_is_the_variable_itself_or_a_part_of_it(between: str, told: str) -> None:
    """What is computed from a variable changes with it, even if the gradient at the sum is eight decades larger."""
    graph = Graph()
    variable = graph.variable("layer/weight")
    op = graph.op("AddV2", graph.op(between, variable))
    graph.gradient(op, sized(0.1))
    graph.target(graph.op("Sum", op), loss=0.5)
    graph.ask("layer/weight", sized(1e-9))

    assert graph.only_finding().cause == told


def test_a_small_factor_that_learns_is_by_design() -> None:
    """ConvNeXt scales each block by a variable that starts at a millionth."""
    finding = shifted("Mul", factor_learns=True).only_finding()

    assert (finding.cause, finding.severity) == ("zero_init_by_design", "info")


@pytest.mark.parametrize("factor_learns", [None, False])
def test_a_small_factor_that_does_not_learn_is_a_warning(factor_learns: bool | None) -> None:
    """A constant, or a variable that stays where it is."""
    findings = shifted("Mul", factor_learns=factor_learns).diagnose().findings

    assert ("vanishing_depth", "warning") in [(finding.cause, finding.severity) for finding in findings]


def test_arithmetic_without_layers_is_told_to_be_scaled() -> None:
    """There is no activation to change in the deflection of a beam."""
    graph = Graph()
    stiffness = graph.variable("stiffness", shape=())
    graph.gradient(stiffness, sized(1e-11))
    deflection = graph.op("RealDiv", stiffness, first=1, api="/", line="return load / stiffness")
    graph.gradient(deflection, sized(1e-5))
    graph.target(graph.op("Mean", graph.op("Square", deflection)))
    graph.ask("stiffness", sized(1e-11))

    finding = graph.only_finding()

    assert finding.cause == "vanishing_depth"
    assert "`stiffness = typical * multiple`" in finding.fix
    assert "relu" not in finding.fix


def test_where_the_loss_is_next_to_zero_small_gradients_are_no_trouble() -> None:
    graph = shifted("Square", loss=1e-15)

    finding = graph.only_finding()

    assert (finding.cause, finding.severity) == ("vanishing_depth", "info")
    assert (
        "a gradient of at most 1.0e-9: the loss is close to zero, so there is nothing left to learn" in finding.message
    )


@pytest.mark.parametrize(
    ("moved", "cause_is_told_as"), [(0.05, "info"), (1e-5, "warning"), (0.0, "warning")], ids=["adam", "sgd", "still"]
)
def test_a_small_gradient_that_the_optimizer_makes_up_for_is_no_trouble(moved: float, cause_is_told_as: str) -> None:
    """The query bias of an attention layer under Adam: its gradient is a ten millionth, and it moves like the rest."""
    graph = chain(("Mean", 1e-3), ("Square", 3e-7), ("MatMul", 6e-8))
    other = graph.op("MatMul", graph.variable("last/kernel"))
    graph.gradient(other, FINE)
    graph.ask("last/kernel", FINE)
    graph.weights[graph.place("first/kernel")] = (1.0, moved)

    finding = graph.only_finding()

    assert (finding.cause, finding.severity) == ("vanishing_depth", cause_is_told_as)
    assert ("the optimizer still moves" in finding.message) == (cause_is_told_as == "info")


def test_where_every_gradient_fades_none_keeps_pace() -> None:
    graph = chain(("Mean", 1e-4), ("Sigmoid", 1e-7), ("MatMul", 1e-9))

    assert graph.only_finding().severity == "warning"


@pytest.mark.parametrize(
    ("arrives", "capsules", "severity"),
    [(8e-5, 0.1, "info"), (1e-8, 0.1, "warning"), (8e-5, 1e-9, "warning")],
    ids=["a small input that learns", "a small gradient", "an input that stays small"],
)
def test_a_layer_whose_input_is_next_to_zero_is_not_deep(arrives: float, capsules: float, severity: str) -> None:
    """The decoder of a capsule network: the gradient is there at its first product, and capsules begin short."""
    graph = Graph()
    short = graph.op("MatMul", graph.variable("capsules/kernel"))
    product = graph.op("MatMul", short, graph.variable("decoder/kernel"))
    graph.gradient(product, sized(arrives))
    sigmoid = graph.op("Sigmoid", product)
    graph.gradient(sigmoid, sized(1e-4))
    graph.target(graph.op("Mean", sigmoid))
    graph.ask("decoder/kernel", sized(1.5e-9))
    graph.ask("capsules/kernel", sized(capsules))
    graph.weights[graph.place("decoder/kernel")] = (1.0, 1e-6)

    [found] = [finding for finding in graph.diagnose().findings if "decoder/kernel" in finding.variables]

    assert (found.cause, found.severity) == ("vanishing_depth", severity)
    assert ("the input of that layer" in found.message) == (severity == "info")


@pytest.mark.parametrize("spread", [True, False])
@pytest.mark.parametrize("batch", [8, -1])
def test_what_a_softmax_weighs_has_in_common_nearly_cancels_by_design(spread: bool, batch: int) -> None:
    graph = Graph()
    each, all_of_them = (batch, 1, 16), (batch, 7, 16)
    query = graph.op("MatMul", graph.variable("attention/query/kernel"), shape=each if spread else all_of_them)
    keys = graph.op("MatMul", graph.variable("attention/keys/kernel"), shape=all_of_them)
    both = graph.op("AddV2", query, keys, shape=all_of_them)
    bent = graph.op("Tanh", both, shape=all_of_them)
    weights = graph.op("Softmax", graph.op("MatMul", bent, shape=(batch, 7, 1)), shape=(batch, 7, 1))
    for op, level in ((weights, 1e-2), (bent, 1e-3), (both, 1e-3), (keys, 1e-3), (query, 1e-6)):
        graph.gradient(op, sized(level))
    graph.target(graph.op("Mean", weights))
    graph.ask("attention/query/kernel", sized(5e-9))
    graph.ask("attention/keys/kernel", sized(1e-3))

    finding = graph.only_finding()

    assert (finding.cause, finding.severity) == ("vanishing_depth", "info")
    assert ("softmax" in finding.message) == spread


def test_of_an_eager_loss_no_line_is_blamed_for_what_fades() -> None:
    graph = Graph()
    loss = graph.op(EAGER, graph.variable("policy/kernel"), line="tb_gradflow.summary.gradients(loss, weights, grads)")
    graph.target(loss)
    graph.ask("policy/kernel", sized(3e-17))

    finding = graph.only_finding()

    assert (finding.cause, finding.op, finding.source) == ("vanishing_depth", None, None)
    assert "How it was computed is not recorded" in finding.message
