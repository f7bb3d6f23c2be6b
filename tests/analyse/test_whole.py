"""Whole numbers and positions: what a remedy says that has to end where integers are asked for."""

from __future__ import annotations

import pytest

from tb_gradflow.record.report import Finding
from tests.analyse.builders import FINE, Graph


def rounded_to_integer(graph: Graph, name: str, line: str) -> int:
    """A variable that is rounded and cast to int32 in one line."""
    rounded = graph.op("Round", graph.variable(name), passes="none", api="tf.round", line=line)
    return graph.op("Cast", rounded, passes="none", dtype="int32", api="tf.cast", line=line)


def rounded_for(taker: str, *, line: str = "", float_again: bool = False) -> Finding:
    graph = Graph()
    integer = rounded_to_integer(graph, "size", "n = tf.cast(tf.round(size), tf.int32)")
    matrix = graph.variable("matrix")
    if float_again:
        integer = graph.op("Cast", integer, passes="dtype", api="tf.cast")
    banded = graph.op(taker, matrix, integer, passes=("yes", "dtype"), api="tf.linalg.band_part", line=line)
    graph.target(graph.op("Mean", banded))
    graph.ask("size")
    graph.ask("matrix", FINE)
    return graph.only_finding()


def test_a_band_is_weighed_by_the_distance_from_the_diagonal() -> None:
    fix = rounded_for("MatrixBandPart", line="return tf.linalg.band_part(scores, n, n)").fix

    assert fix.startswith("`tf.linalg.band_part` (")
    assert "`scores * tf.sigmoid((size - distance) / 0.5)`" in fix


def test_what_takes_whole_numbers_alone_is_not_helped_by_a_straight_through() -> None:
    assert "stop_gradient" not in rounded_for("Tile").fix
    assert "`size + tf.stop_gradient(tf.round(size) - size)`" in rounded_for("Mul", float_again=True).fix


def test_what_is_rounded_and_then_compared_is_compared_softly() -> None:
    graph = Graph()
    integer = rounded_to_integer(graph, "size", "n = tf.cast(tf.round(size), tf.int32)")
    line = "m = tf.cast(tf.range(9) < n, tf.float32)"
    mask = graph.op("Less", integer, first=1, passes="dtype", dtype="bool", api="<", line=line)
    graph.target(graph.op("Mean", graph.op("Square", graph.op("Cast", mask, passes="dtype"))))
    graph.ask("size")

    fix = graph.only_finding().fix

    assert fix == (
        "Drop the rounding and compare softly: `tf.sigmoid((size - tf.cast(tf.range(9), tf.float32)) / 0.5)`."
    )


def test_answers_that_are_rounded_compared_and_counted_are_trained_by_their_probability() -> None:
    """As where they are summed as floating-point numbers. A straight-through estimator would end at the comparison."""
    graph = Graph()
    line = "right = tf.math.count_nonzero(tf.equal(tf.round(p), y))"
    answer = graph.op("Sigmoid", graph.variable("kernel"))
    rounded = graph.op("Round", answer, passes="not_differentiable", api="tf.round", line=line)
    same = graph.op("Equal", rounded, passes="not_differentiable", dtype="bool", api="tf.equal", line=line)
    count = graph.op("Cast", same, passes="dtype", dtype="int64", api="tf.math.count_nonzero", line=line)
    count = graph.op("Sum", count, passes="dtype", dtype="int64", api="tf.math.count_nonzero", line=line, shape=())
    graph.target(graph.op("Neg", graph.op("Cast", count, passes="dtype", shape=()), shape=()))
    graph.ask("kernel")

    finding = graph.only_finding()
    assert finding.cause == "nondiff_counting"
    assert finding.fix == "Train on `keras.losses.binary_crossentropy(y, p)` and count in a metric."


def test_how_often_a_row_is_repeated_is_not_compared_softly() -> None:
    graph = Graph()
    integer = rounded_to_integer(graph, "length", "n = tf.cast(tf.round(length), tf.int32)")
    line = "frames = tf.repeat(tokens, n, axis=0)"
    rows = graph.op("Less", integer, first=1, passes="dtype", dtype="bool", api="tf.repeat", line=line)
    places = graph.op("Where", rows, passes="dtype", dtype="int64", api="tf.repeat", line=line)
    tokens = graph.variable("tokens")
    frames = graph.op("GatherV2", tokens, places, passes=("yes", "dtype"), api="tf.repeat", line=line)
    graph.target(graph.op("Mean", frames))
    graph.ask("length")
    graph.ask("tokens", FINE)

    fix = graph.only_finding().fix

    assert "its own loss" in fix
    assert "`tf.repeat`" in fix


@pytest.mark.parametrize(
    ("there", "back", "fix"),
    [
        ("y = tf.cast(tf.cast(x, tf.int32), tf.float32)", "", "tf.cast(tf.cast(x, tf.int32), tf.float32)"),
        ("q = tf.cast(x, tf.uint8)", "y = tf.cast(q, tf.float32)", "tf.cast(tf.cast(x, tf.uint8), tf.float32)"),
        ("q = tf.cast(x, tf.uint8)", "y = tf.cast(other, tf.float32)", "tf.round(x)"),
    ],
)
def test_the_whole_way_to_integers_and_back_is_passed_by(there: str, back: str, fix: str) -> None:
    graph = Graph()
    integer = graph.op("Cast", graph.variable("w"), passes="none", dtype="int32", api="tf.cast", line=there)
    again = graph.op("Cast", integer, passes="dtype", api="tf.cast", line=back or there)
    graph.target(graph.op("Mean", graph.op("Square", again)))
    graph.ask("w")

    assert f"`x + tf.stop_gradient({fix} - x)`" in graph.only_finding().fix


def test_of_another_conversion_nobody_rounds() -> None:
    """An image between 0 and 1 would be black and white."""
    graph = Graph()
    name, line = "tf.image.convert_image_dtype", "q = tf.image.convert_image_dtype(image, tf.uint8)"
    integer = graph.op("Cast", graph.variable("w"), passes="none", dtype="uint8", api=name, line=line)
    graph.target(graph.op("Mean", graph.op("Square", graph.op("Cast", integer, passes="dtype"))))
    graph.ask("w")

    fix = graph.only_finding().fix

    assert "tf.round" not in fix
    assert "`image + tf.stop_gradient(back - image)`" in fix


def looked_up(kind: str, api: str, line: str, *, rows: tuple[int, ...], take: str = "row = tf.gather(t, i)") -> Finding:
    graph = Graph()
    place = graph.op(kind, graph.variable("key"), passes="none", dtype="int32", api=api, line=line)
    table = graph.variable("table", shape=rows)
    row = graph.op("GatherV2", table, place, passes=("yes", "dtype"), api="tf.gather", line=take)
    graph.target(graph.op("Mean", row))
    graph.ask("key")
    graph.ask("table", FINE)
    return graph.only_finding()


def test_rows_of_a_table_are_weighed() -> None:
    line = "i = tf.argmin(d, axis=-1)"

    fix = looked_up("ArgMin", "tf.argmin", line, rows=(8, 4)).fix
    assert fix.startswith(
        "Replace `tf.gather(t, i)` with a weighted sum of the rows: `weights = tf.nn.softmax(-d / 0.1"
    )
    assert "then `tf.matmul(weights, t)`" in fix
    assert "then `tf.reduce_sum(weights * t, axis=-1)`" in looked_up("ArgMin", "tf.argmin", line, rows=(8,)).fix
    other = looked_up("ArgMin", "tf.argmin", line, rows=(8, 4), take="row = tf.gather(t, i, axis=1)")
    assert "matmul" not in other.fix


def test_steps_of_a_table_are_made_soft() -> None:
    fix = looked_up("UpperBound", "tf.searchsorted", "i = tf.searchsorted(edges, x)", rows=(8,)).fix

    assert "`steps = tf.sigmoid((x[..., None] - edges) / 0.1)`" in fix
    assert "`t[0] + tf.reduce_sum(steps * (t[1:] - t[:-1]), axis=-1)`" in fix


@pytest.mark.parametrize(("behind", "logits"), [("Softmax", ""), ("BiasAdd", ", from_logits=True")])
def test_classes_that_are_compared_in_a_loss_are_told_a_loss(behind: str, logits: str) -> None:
    graph = Graph()
    scores = graph.op(behind, graph.variable("w"))
    line = "guess = tf.argmax(y_pred, axis=-1)"
    guess = graph.op(
        "ArgMax", scores, passes="none", dtype="int64", api="tf.argmax", line=line, name="compile_loss/ArgMax"
    )
    right = graph.op("Cast", graph.op("Equal", guess, passes="dtype", dtype="bool"), passes="dtype")
    graph.target(graph.op("Mean", graph.op("Sub", right)))
    graph.ask("w")

    fix = graph.only_finding().fix

    assert fix.startswith(f"Train on `keras.losses.sparse_categorical_crossentropy(y, y_pred{logits})`")


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        (
            "p = tf.cast(p, y.dtype)",
            "Cast the integers instead: `y = tf.cast(y, p.dtype)`, and use `p` as it is instead of `tf.cast(p, "
            "y.dtype)`.",
        ),
        (
            "e = y - tf.cast(net(x), dtype=y.dtype)",
            "Cast the integers instead: `p = net(x)`, `y = tf.cast(y, p.dtype)`, and use `p` as it is instead of "
            "`tf.cast(net(x), dtype=y.dtype)`.",
        ),
    ],
)
def test_predictions_cast_to_the_type_of_integer_labels_are_left_and_the_labels_cast(line: str, fix: str) -> None:
    """Passed straight through they would be floating numbers beside integers, which TensorFlow does not subtract."""
    graph = Graph()
    integer = graph.op("Cast", graph.variable("w"), passes="none", dtype="int32", api="tf.cast", line=line)
    apart = graph.op("Sub", integer, dtype="int32", input_count=2)
    graph.target(graph.op("Mean", graph.op("Cast", apart, passes="dtype")))
    graph.ask("w")

    finding = graph.only_finding()

    assert (finding.cause, finding.fix) == ("integer_dtype", fix)


def test_only_one_conversion_back_makes_a_way_that_is_passed_by() -> None:
    graph = Graph()
    line = "q = tf.cast(x, tf.uint8)"
    integer = graph.op("Cast", graph.variable("w"), passes="none", dtype="int32", api="tf.cast", line=line)
    first = graph.op("Cast", integer, passes="dtype", api="tf.cast", line="y = tf.cast(q, tf.float32)")
    second = graph.op("Cast", integer, passes="dtype", api="tf.cast", line="z = 2 * tf.cast(q, tf.float32)")
    graph.target(graph.op("Mean", graph.op("Mul", first, second)))
    graph.ask("w")

    assert "`x + tf.stop_gradient(tf.round(x) - x)`" in graph.only_finding().fix


def test_half_precision_between_rounding_and_integers_changes_nothing() -> None:
    graph = Graph()
    rounded = graph.op("Round", graph.variable("size"), passes="none", api="tf.round", line="n = tf.round(size)")
    integer = graph.op("Cast", graph.op("Cast", rounded, dtype="float16"), passes="none", dtype="int32")
    tiled = graph.op("Tile", graph.variable("kernel"), integer, passes=("yes", "dtype"), api="tf.tile")
    graph.target(graph.op("Mean", tiled))
    graph.ask("size")
    graph.ask("kernel", FINE)

    fix = graph.only_finding().fix

    assert "accepts only integers" in fix
    assert "stop_gradient" not in fix


def test_numbers_that_are_given_to_a_python_function_are_not_converted_back() -> None:
    graph = Graph()
    line = "y = tf.numpy_function(tf.cast(x, tf.int32), tf.float32)"
    integer = graph.op("Cast", graph.variable("w"), passes="none", dtype="int32", api="tf.cast", line=line)
    graph.target(graph.op("Mean", graph.op("PyFunc", integer, passes="dtype", api="tf.numpy_function", line=line)))
    graph.ask("w")

    assert "tf.stop_gradient(tf.numpy_function" not in graph.only_finding().fix
