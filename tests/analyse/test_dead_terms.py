"""Terms that are computed and that no loss takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tb_gradflow.record.report import Finding
from tests.analyse.builders import FINE, Graph

TERM = "loss = beta * commitment + codebook"


def codebook(line: str = TERM, *, straight: bool = True, shape: tuple[int, ...] = (), added: bool = False) -> Finding:
    """What is found of codes that a straight-through line uses, and that a term is computed of in `line`."""
    graph = Graph()
    encoded = graph.op("MatMul", graph.variable("encoder/kernel"))
    codes = graph.op("MatMul", graph.op("Mul", encoded, encoded), graph.variable("codebook"))
    term = graph.op("Mean", graph.op("Square", codes), shape=shape, api="tf.reduce_mean", line=line)
    kept = graph.op("Sub", codes, encoded) if straight else codes
    line = "q = x + tf.stop_gradient(q - x)"
    stopped = graph.op("StopGradient", kept, passes="not_differentiable", api="tf.stop_gradient", line=line)
    loss = graph.op("Mean", graph.op("AddV2", encoded, stopped) if straight else stopped, shape=())
    graph.target(
        graph.op("AddV2", loss, graph.op("StopGradient", term, passes="not_differentiable")) if added else loss
    )
    graph.ask("encoder/kernel", FINE if straight else None)
    graph.ask("codebook")
    return graph.diagnose().findings[0]


@pytest.mark.parametrize("name", ["loss", "self.vq_loss"])
def test_a_term_that_was_not_added_is_what_a_codebook_lacks(name: str) -> None:
    term = TERM.replace("loss", name)
    found = codebook(term)

    assert (found.cause, found.severity, found.variables) == ("output_not_used", "error", ("codebook",))
    assert found.source is not None
    assert found.source.code == term
    assert "tf.stop_gradient" in found.message
    assert f"Add it to the loss: `{name}`" in found.fix


@pytest.mark.parametrize(
    "found",
    [
        lambda: codebook("tf.summary.scalar('distance', tf.reduce_mean((q - x) ** 2))"),
        lambda: codebook("metric.update_state(tf.reduce_mean((q - x) ** 2))"),
        lambda: codebook(shape=(3,)),
        lambda: codebook(straight=False),
        lambda: codebook(added=True),
    ],
    ids=["summarised", "measured", "no single number", "stopped on purpose", "part of the loss"],
)
def test_other_numbers_are_no_terms(found: Callable[[], Finding]) -> None:
    assert found().cause == "stop_gradient_misuse"


@pytest.mark.parametrize(("line", "cause"), [("nce = contrastive(z)", "output_not_used"), ("", "unused_by_design")])
def test_a_head_that_a_loss_is_computed_with_is_not_idle(line: str, cause: str) -> None:
    graph = Graph()
    features = graph.op("MatMul", graph.variable("encoder/kernel"))
    projected = graph.op("MatMul", features, graph.variable("projection_head/kernel"))
    if line:
        graph.op("Mean", projected, shape=(), api="tf.reduce_mean", line=line)
    graph.target(graph.op("Mean", features, shape=()))
    graph.ask("encoder/kernel", FINE)
    graph.ask("projection_head/kernel")

    found = graph.only_finding()

    assert found.cause == cause
    assert not line or "Add `nce`" in found.fix
