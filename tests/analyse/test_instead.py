"""What to write in the place of an op, in the user's own words, where a general remedy would not help."""

from __future__ import annotations

import pytest

from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import Layer
from tests.analyse.builders import FINE, NAN, ZERO, Graph


def logarithm(kind: str, *, before: bool) -> Finding:
    """A logarithm of what `kind` makes, or with `kind` behind it."""
    graph = Graph()
    made = graph.op(kind if before else "Cholesky", graph.variable("w"))
    log = graph.op("Log", made, api="tf.math.log", line="d = tf.math.log(tf.abs(tf.linalg.det(self.w)))")
    for op, row in ((0, NAN), (made, NAN), (log, FINE)):
        graph.gradient(op, row)
    behind = log if before else graph.op(kind, log)
    graph.gradient(behind, FINE)
    graph.target(graph.op("Sum", behind))
    graph.ask("w", NAN)
    return graph.only_finding()


def test_the_logarithm_of_a_determinant_is_taken_without_it() -> None:
    assert "`tf.linalg.slogdet(self.w)[1]`" in logarithm("MatrixDeterminant", before=True).fix


def test_of_a_diagonal_the_logarithm_comes_last() -> None:
    told = "`tf.math.log(tf.linalg.diag_part(tf.abs(tf.linalg.det(self.w))))`"

    assert told in logarithm("MatrixDiagPartV3", before=False).fix
    assert "diag_part" not in logarithm("Square", before=False).fix


def shifted(
    kind: str, *, rounds: bool, dtype: str = "float32", taker: str = "tf.roll(x, tf.cast({d}, tf.int32), axis=-1)"
) -> Finding:
    graph = Graph()
    line = "y = " + taker.format(d="tf.round(self.d)" if rounds else "self.d")
    value = graph.variable("d", shape=())
    if rounds:
        value = graph.op("Round", value, passes="none", api="tf.round", line=line)
    whole = graph.op("Cast", value, passes="yes" if rounds else "dtype", dtype="int32", api="tf.cast", line=line)
    taken = graph.op(kind, whole, passes="dtype", first=1, api="tf.roll", line=line, dtype=dtype)
    graph.target(graph.op("Mean", graph.op("Mul", taken, graph.variable("w"))))
    graph.ask("d")
    graph.ask("w", FINE)
    return graph.only_finding()


@pytest.mark.parametrize("rounds", [True, False])
def test_what_is_moved_by_whole_places_is_weighed_between_two(rounds: bool) -> None:
    fix = shifted("Roll", rounds=rounds).fix

    assert "then `(1 - w) * tf.roll(x, k, axis=-1) + w * tf.roll(x, k + 1, axis=-1)`" in fix
    assert "`k = tf.cast(tf.floor(self.d), tf.int32)`" in fix


@pytest.mark.parametrize(
    ("taker", "rolled"),
    [
        ("roll(x, tf.cast({d}, tf.int32), 1)", "roll(x, {at}, 1)"),
        ("keras.ops.roll(x, shift=tf.cast({d}, tf.int32), axis=1)", "keras.ops.roll(x, shift={at}, axis=1)"),
        ("tf.roll(x[0], axis=1, shift=tf.cast({d}, tf.int32))", "tf.roll(x[0], axis=1, shift={at})"),
    ],
)
def test_a_move_is_written_again_as_the_user_wrote_it(taker: str, rolled: str) -> None:
    fix = shifted("Roll", rounds=False, taker=taker).fix

    assert f"then `(1 - w) * {rolled.format(at='k')} + w * {rolled.format(at='k + 1')}`" in fix


def test_nothing_is_passed_straight_through_to_what_takes_whole_numbers_alone() -> None:
    finding = shifted("Tile", rounds=False)

    assert finding.cause == "integer_dtype"
    assert "accepts only integers" in finding.fix
    assert "stop_gradient" not in finding.fix


def test_what_a_loop_is_given_as_integers_may_be_made_numbers_again() -> None:
    assert "stop_gradient" in shifted("TensorListFromTensor", rounds=False, dtype="variant").fix


def test_a_product_of_a_zero_has_a_derivative_that_is_not_to_be_trusted() -> None:
    graph = Graph()
    clear = graph.op("Sub", graph.variable("alpha"))
    product = graph.op("Cumprod", clear, api="tf.math.cumprod", line="t = tf.math.cumprod(1.0 - alpha, exclusive=True)")
    for op, row in ((0, ZERO), (clear, ZERO), (product, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("Mean", product))
    graph.ask("alpha", ZERO)

    finding = graph.only_finding()

    assert "contains a zero" in finding.message
    assert "`tf.math.cumprod((1.0 - alpha) + 1e-06, exclusive=True)`" in finding.fix


def edge(*, factor: float, layer: bool = False) -> Finding:
    """A sigmoid behind a product with a constant."""
    graph = Graph()
    line = "cover = tf.sigmoid(d * SHARP)"
    scaled = graph.op("Mul", graph.variable("radius"), constants={1: factor}, api="*", line=line)
    cover = graph.op("Sigmoid", scaled, api="tf.sigmoid", line=line)
    for op, row in ((0, ZERO), (scaled, ZERO), (cover, FINE)):
        graph.gradient(op, row)
    if layer:
        graph.layers.append(Layer("m/edge", "edge", "Layer"))
    graph.target(graph.op("Mean", graph.op("Mul", cover, graph.variable("colour"))))
    graph.ask("radius", ZERO)
    graph.ask("colour", FINE)
    return graph.only_finding()


def test_the_number_that_makes_a_step_of_a_sigmoid_is_told() -> None:
    finding = edge(factor=1e4)

    assert finding.cause == "saturation_sigmoid"
    assert "which `*` (model.py:17) multiplies by 1e+04, is so large" in finding.message
    assert finding.fix.startswith("Multiply by a smaller number")


def test_a_batch_normalisation_is_for_models_that_have_layers() -> None:
    assert "tf.sigmoid((d * SHARP) / 10.0)" in edge(factor=2.0).fix
    assert "BatchNormalization" in edge(factor=2.0, layer=True).fix


def test_where_to_look_cannot_be_learned_by_a_glimpse() -> None:
    graph = Graph()
    place = graph.op("MatMul", graph.variable("locate"))
    seen = graph.op("ExtractGlimpseV2", place, passes="unregistered", first=2, api="tf.image.extract_glimpse")
    graph.target(graph.op("Mean", graph.op("MatMul", seen, graph.variable("look"))))
    graph.ask("locate", outcome="error")
    graph.ask("look", FINE)

    assert "passes no gradient to the positions computed from it" in graph.only_finding().fix
