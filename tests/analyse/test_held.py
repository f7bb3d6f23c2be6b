"""Limits at zero in a loss: the overlap of boxes that do not touch."""

from __future__ import annotations

import pytest

from tb_gradflow.record.report import Finding
from tests.analyse.builders import FINE, ZERO, Graph

_LINE = "wh = tf.maximum(far - near, 0.0)"


def overlap(*, of_both: bool) -> Finding:
    """Width times height, the product of what one `maximum` makes; or the width alone, times something of data."""
    graph = Graph()
    boxes = graph.op("MatMul", graph.variable("kernel"))
    limited = graph.op("Maximum", boxes, api="tf.maximum", line=_LINE, constants={1: 0.0}, input_count=2)
    width, height = graph.op("StridedSlice", limited), graph.op("StridedSlice", limited)
    area = graph.op("Mul", width, height, api="*", line="area = wh[:, 0] * wh[:, 1]", input_count=2)
    graph.target(graph.op("Mean", graph.op("Sub", area, first=1)), loss=1.0)
    graph.ask("kernel", ZERO)
    graph.gradient(area, FINE)
    slopes = (ZERO, ZERO, ZERO) if of_both else (FINE, ZERO, FINE)
    for op, row in zip((width, height, limited), slopes, strict=True):
        graph.gradient(op, row)
    graph.gradient(boxes, ZERO)
    return graph.only_finding()


def test_the_limit_is_to_blame_for_a_product_of_two_zeros() -> None:
    finding = overlap(of_both=True)

    assert (finding.cause, finding.severity, finding.culprit) == ("saturation_clip", "error", 2)
    assert "`tf.maximum` (model.py:17) clips both factors of `*` (model.py:17) to zero" in finding.message
    assert "stop_gradient" not in finding.fix


def test_a_limit_at_zero_in_a_loss_is_no_layer_that_multiplies() -> None:
    finding = overlap(of_both=False)

    assert (finding.cause, finding.culprit) == ("dead_relu", 2)
    assert "`tf.maximum` (model.py:17) is zero, and so is its derivative, for every input" in finding.message
    assert (
        "`, which passes a gradient for negative inputs, instead of `tf.maximum(far - near, 0.0)`; or add a loss term"
        in finding.fix
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("near = tf.clip_by_value(v - old, -0.2, 0.2)", "`raw = v - old`, then `raw + tf.stop_gradient("),
        ("near = tf.clip_by_value(p - old, -0.2, 0.2)", "`v = p - old`, then `v + tf.stop_gradient("),
    ],
)
def test_the_name_of_a_value_in_between_is_not_one_of_the_users(line: str, told: str) -> None:
    graph = Graph()
    limited = graph.op("Minimum", graph.variable("kernel"), api="tf.clip_by_value", line=line)
    graph.target(graph.op("Mean", limited))
    graph.ask("kernel", ZERO)
    graph.gradient(limited, FINE)
    graph.gradient(0, ZERO)

    assert told in graph.only_finding().fix
