"""Topology against the slow, obvious version of each of its answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_gradflow.analyse.graph.op_sets import passes_gradient
from tb_gradflow.analyse.graph.paths import members
from tb_gradflow.analyse.graph.sinks import outlets
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import Edge, Op, Passes, Target, Tensor, Trace, Variable
from tests.analyse.builders import Graph

PASSES: tuple[Passes, ...] = ("yes", "yes", "yes", "none", "dtype", "state", "unknown", "not_differentiable")

# How long a machine takes is no matter of these tests.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Up to twelve ops, any edges back, some edges around loops, the last op the target."""
    count = draw(st.integers(2, 12))
    ops = []
    for index in range(count):
        sources = draw(st.lists(st.integers(-1, index - 1), max_size=3)) if index else []
        edges = [Edge(op, 0, place, draw(st.sampled_from(PASSES)), False) for place, op in enumerate(sources)]
        if draw(st.integers(0, 5)) == 0:
            edges.append(Edge(draw(st.integers(index, count - 1)), 0, len(edges), draw(st.sampled_from(PASSES)), True))
        reads = draw(st.sampled_from((None, None, 0, 1))) if not sources else None
        kind = draw(st.sampled_from(("Mul", "Mul", "Mul", "Shape")))
        dtype = draw(st.sampled_from(("float32", "float32", "int32")))
        ops.append(Op(f"op{index}", kind, tuple(edges), (Tensor((), dtype),), None, None, reads, None, None))
    variables = tuple(Variable(f"v{place}", (), "float32", True, True) for place in range(2))
    return Trace(0, tuple(ops), variables, (Target("loss", count - 1, 0, None, "none"),), (), (), (), (), ())


def neighbours(trace: Trace, *, gradient: bool) -> Callable[[int], set[int]]:
    """Who an op's value goes to, by looking at every edge every time."""

    def onward(source: int) -> set[int]:
        return {
            index
            for index, op in enumerate(trace.ops)
            if op.type != "Shape"
            for edge in op.inputs
            if edge.op == source and (not gradient or passes_gradient(edge))
        }

    return onward


def slow_hops(trace: Trace, start: int, goal: int, *, gradient: bool) -> int:
    """Distance by widening a circle; -1 if the goal is never inside."""
    onward = neighbours(trace, gradient=gradient)
    circle, hops = {start}, 0
    while goal not in circle:
        wider = circle.union(*(onward(op) for op in circle))
        if wider == circle:
            return -1
        circle, hops = wider, hops + 1
    return hops


@patient
@given(traces())
def test_distances_to_the_target_are_those_of_a_widening_circle(trace: Trace) -> None:
    topology, goal = Topology(trace), trace.targets[0].op

    for op in range(len(trace.ops)):
        assert topology.influence(0).hops[op] == slow_hops(trace, op, goal, gradient=False)
        assert topology.gradient(0).hops[op] == slow_hops(trace, op, goal, gradient=True)


@patient
@given(traces())
def test_a_way_to_the_target_takes_one_edge_at_a_time_and_no_more_than_it_must(trace: Trace) -> None:
    topology, onward = Topology(trace), neighbours(trace, gradient=False)

    for op in range(len(trace.ops)):
        way = topology.influence(0).from_op(op)
        assert len(way) == topology.influence(0).hops[op] + 1
        assert all(after in onward(before) for before, after in pairwise(way))


@patient
@given(traces(), st.data())
def test_a_way_between_ops_is_a_shortest_one(trace: Trace, data: st.DataObject) -> None:
    topology = Topology(trace)
    start, goal = (data.draw(st.integers(0, len(trace.ops) - 1)) for _ in range(2))

    way = topology.way_between([start], goal)

    assert len(way) == slow_hops(trace, start, goal, gradient=True) + 1


@patient
@given(traces(), st.data())
def test_a_walk_through_ops_of_some_types_goes_on_from_these_alone(trace: Trace, data: st.DataObject) -> None:
    topology, ops = Topology(trace), trace.ops
    starts = data.draw(st.sets(st.integers(0, len(ops) - 1)))
    types = data.draw(st.sets(st.sampled_from(("Mul", "Shape"))))
    onward = neighbours(trace, gradient=True)

    for walk, neighbours_of in (
        (topology.ahead(starts, types), onward),
        (topology.behind(starts, types), lambda op: {edge.op for edge in ops[op].inputs} - {-1}),
    ):
        met, reached = list(walk), set(starts)
        while more := {each for op in reached if ops[op].type in types for each in neighbours_of(op)} - reached:
            reached |= more

        assert sorted(met) == sorted(reached)


@patient
@given(traces())
def test_the_first_cuts_are_those_that_a_walk_from_the_op_runs_into(trace: Trace) -> None:
    topology, onward = Topology(trace), neighbours(trace, gradient=True)
    influence, gradient = topology.influence(0).hops, topology.gradient(0).hops
    inside = [influence[op] >= 0 and gradient[op] < 0 for op in range(len(trace.ops))]
    crossings = topology.cut_crossings(0)

    met = topology.met_first(inside, crossings)

    for op in range(len(trace.ops)):
        seen = {op} if inside[op] else set()
        while (wider := seen.union(*({each for each in onward(one) if inside[each]} for one in seen))) != seen:
            seen = wider
        assert set(members(met[op])) == {place for place, each in enumerate(crossings) if each.producer in seen}


@patient
@given(traces())
def test_an_influencing_variable_without_gradient_always_meets_a_cut(trace: Trace) -> None:
    """Otherwise a disconnected variable would have no finding."""
    topology = Topology(trace)
    influence, gradient = topology.influence(0).hops, topology.gradient(0).hops
    inside = [influence[op] >= 0 and gradient[op] < 0 for op in range(len(trace.ops))]

    met = topology.met_first(inside, topology.cut_crossings(0))

    assert all(met[op] for op in range(len(trace.ops)) if inside[op])


@st.composite
def users_of_ops(draw: st.DrawFn) -> list[list[int]]:
    """For each op, the ops that use its value: later ones, and around loops also itself and earlier ones."""
    count, loops = draw(st.integers(1, 8)), draw(st.booleans())
    first = [0] * count if loops else range(1, count + 1)
    return [draw(st.lists(st.integers(least, count - 1), max_size=2)) if least < count else [] for least in first]


@patient
@given(users_of_ops(), st.data())
def test_what_a_value_flows_into_is_what_a_walk_from_its_op_meets(users: list[list[int]], data: st.DataObject) -> None:
    copies = [data.draw(st.booleans()) for _ in users]

    found = outlets(users, copies, again=True)

    for op, outlet in enumerate(found):
        met = {op}
        while (wider := met.union(*(users[each] for each in met))) != met:
            met = wider
        assert outlet.end == max((each for each in met if not set(users[each]) - {each}), default=-1)
        assert outlet.furthest == max(met)
        assert outlet.computes == any(not copies[each] for each in met)
        if all(user > place for place, each in enumerate(users) for user in each):
            assert outlets(users, copies, again=False) == found


def test_a_value_that_a_loop_only_copies_goes_nowhere() -> None:
    graph = Graph()
    kernel = graph.variable("kernel")
    first = graph.op("Identity", kernel)
    second = graph.op("Identity", first)
    graph.ops[first] = replace(graph.ops[first], inputs=(*graph.ops[first].inputs, Edge(second, 0, 1, "yes", True)))

    assert Topology(graph.trace()).dead_end(0) == -1


def test_a_value_that_a_loop_computes_with_ends_at_the_last_op_that_computes() -> None:
    graph = Graph()
    product = graph.op("Mul", graph.variable("kernel"))
    again = graph.op("Identity", product)
    graph.ops[product] = replace(
        graph.ops[product], inputs=(*graph.ops[product].inputs, Edge(again, 0, 1, "yes", True))
    )

    assert Topology(graph.trace()).dead_end(0) == product


def test_sizes_and_types_carry_no_influence() -> None:
    graph = Graph()
    kernel = graph.variable("kernel")
    graph.target(graph.op("Fill", graph.op("Shape", kernel, dtype="int32")))

    assert not Topology(graph.trace()).influences(0, 0)


def test_indices_made_by_an_op_with_a_gradient_are_that_ops_doing() -> None:
    """`top_k` passes gradient through its values; who takes its indices gets none, whatever reads them."""
    graph = Graph()
    scores = graph.variable("scores")
    top = graph.op("TopKV2", scores, dtype="int32")
    graph.target(graph.op("Cast", top, passes="dtype"))

    [crossing] = Topology(graph.trace()).cut_crossings(0)

    assert (crossing.consumer, crossing.culprit) == (2, top)


def test_the_way_of_an_unused_value_ends_at_the_last_op_that_computes() -> None:
    graph = Graph()
    kernel = graph.variable("kernel")
    product = graph.op("MatMul", kernel)
    graph.op("Identity", product)

    assert Topology(graph.trace()).dead_end(0) == product


def test_a_value_that_is_only_copied_goes_nowhere() -> None:
    graph = Graph()
    graph.op("Identity", graph.variable("kernel"))

    assert Topology(graph.trace()).dead_end(0) == -1
