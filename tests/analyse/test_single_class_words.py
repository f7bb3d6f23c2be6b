"""What to write for a softmax over one entry: it depends on what the softmax is for."""

from __future__ import annotations

from tb_gradflow.record.schema import Layer
from tests.analyse.builders import FINE, ZERO, Graph


def single(shape: tuple[int, ...], *, line: str | None, behind: bool) -> str:
    """The remedy of a softmax with one entry; `behind`, whether a layer takes what it puts out."""
    graph = Graph()
    scores = graph.op("MatMul", graph.variable("score/kernel"))
    softmax = graph.op("Softmax", scores, shape=shape, line=line, api="tf.nn.softmax" if line else None)
    result = graph.op("MatMul", softmax, graph.variable("head/kernel")) if behind else softmax
    for op, row in ((scores, ZERO), (softmax, FINE), (result, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("Mean", result))
    graph.ask("score/kernel", ZERO)
    if behind:
        graph.ask("head/kernel", FINE)
    finding = graph.only_finding()
    assert finding.cause == "softmax_single_class"
    return finding.fix


def test_weights_of_rows_lie_along_the_first_axis() -> None:
    fix = single((120, 1), line="a = tf.nn.softmax(scores, axis=-1)", behind=True)

    assert fix.startswith("Use `tf.sigmoid(scores)`")
    assert "`tf.nn.softmax(scores, axis=0)`" in fix


def test_weights_along_time_lie_along_the_second() -> None:
    fix = single((8, 20, 1), line="a = tf.nn.softmax(scores, axis=-1)", behind=True)

    assert fix.startswith("Normalise over the axis with several entries: `tf.nn.softmax(scores, axis=1)`.")


def test_an_axis_that_is_no_plain_number_is_the_last() -> None:
    fix = single((8, 20, 1), line="a = tf.nn.softmax(scores, axis=--1)", behind=True)

    assert fix.startswith("Normalise over the axis with several entries")


def test_one_unit_as_an_output_takes_a_sigmoid() -> None:
    assert single((120, 1), line=None, behind=False).startswith('Use `activation="sigmoid"` for one unit')


def test_an_image_of_one_channel_is_no_attention() -> None:
    """The loss takes the logits, and the softmax of the last convolution is left aside."""
    graph = Graph()
    logits = graph.op("MatMul", graph.variable("out/kernel"))
    graph.op("Softmax", logits, shape=(8, 14, 14, 1), name="out/Softmax")
    graph.layers.append(Layer("out", "out", "Conv2D"))
    graph.gradient(logits, FINE)
    graph.target(graph.op("Mean", logits))
    graph.ask("out/kernel", FINE)

    finding = graph.only_finding()

    assert finding.cause == "softmax_single_class"
    assert finding.fix.startswith('Use `activation="sigmoid"` for one unit')


def cut_beside_a_stop(code: str | None) -> str:
    """What is said of a rounding on the only way, and a `stop_gradient` in a layer on another."""
    graph = Graph()
    graph.layers.append(Layer("norm", "norm", "BatchNormalization"))
    value = graph.op("MatMul", graph.variable("kernel"))
    stopped = graph.op(
        "StopGradient", value, passes="not_differentiable", name="norm/StopGradient", api="tf.stop_gradient", line=code
    )
    rounded = graph.op("Round", graph.op("Mul", value, value), passes="not_differentiable", api="tf.round")
    graph.target(graph.op("AddV2", rounded, stopped))
    graph.ask("kernel", None)
    return graph.only_finding().message


def test_what_a_layer_stops_for_itself_is_not_told() -> None:
    assert "stop_gradient" not in cut_beside_a_stop("x = self.norm(x)")
    assert "`tf.stop_gradient`" in cut_beside_a_stop("x = self.norm(tf.stop_gradient(x))")
