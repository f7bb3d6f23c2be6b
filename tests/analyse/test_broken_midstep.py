"""A step that breaks weights for one loss, and computes another one from them."""

from __future__ import annotations

import math

import pytest

from tests.analyse.builders import FINE, INF, NAN, Graph


def two_losses(*, updated: bool = True, broken: bool = True, loss: float = math.nan) -> Graph:
    """A critic whose gradient is NaN at a square root, and a generator trained through it, as in a GAN."""
    graph = Graph()
    critic, generator = graph.variable("critic"), graph.variable("generator")
    product = graph.op("MatMul", critic)
    graph.gradient(product, INF)
    root = graph.op("Sqrt", product)
    graph.gradient(root, FINE)
    graph.target(graph.op("Mean", root))
    graph.ask("critic", NAN)

    fake = graph.op("MatMul", generator)
    graph.gradient(fake, NAN, target=1)
    score = graph.op("MatMul", fake, graph.read("critic", updated=updated))
    graph.gradient(score, FINE, target=1)
    graph.target(graph.op("Mean", score), loss=loss)
    graph.ask("generator", NAN, target=1)
    if broken:
        graph.nonfinite[graph.place("critic")] = (0.0, 3.0)
    return graph


def test_what_follows_in_the_same_step_is_no_error_of_its_own() -> None:
    first, second = two_losses().diagnose().findings

    assert (first.cause, first.severity, first.variables) == ("sqrt_at_zero", "error", ("critic",))
    assert (second.cause, second.severity, second.variables) == ("nonfinite_weights", "info", ("generator",))
    assert "an earlier update in this step, for another loss, broke `critic` (3 of 3 values)" in second.message
    assert second.op is None


@pytest.mark.parametrize(
    "graph",
    [two_losses(updated=False), two_losses(broken=False), two_losses(loss=0.5)],
    ids=["read before the update", "not broken", "a finite loss"],
)
def test_what_does_not_follow_is_one(graph: Graph) -> None:
    causes = {finding.variables: (finding.cause, finding.severity) for finding in graph.diagnose().findings}

    assert causes[("critic",)] == ("sqrt_at_zero", "error")
    assert causes[("generator",)] == ("not_finite", "error")
