"""Words: what the user wrote, taken apart and put into a remedy."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tb_gradflow import analyse
from tb_gradflow.analyse.words import names
from tb_gradflow.analyse.words.code import (
    call_on,
    calls_in_order,
    conditions_joined,
    fractional_power_on,
    innermost_call,
    negated,
    sides_of,
)
from tb_gradflow.analyse.words.names import layer_of, quoted
from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import Layer, Trace
from tests.analyse.builders import FINE, ZERO, Graph


@pytest.mark.parametrize(
    ("line", "api", "text", "subject"),
    [
        ("y = tf.round(x)", "tf.round", "tf.round(x)", "x"),
        ("return K.round(self.scale * x)", "keras.ops.round", "K.round(self.scale * x)", "self.scale * x"),
        ("if tf.reduce_any(x > limit):", ">", "x > limit", "x"),
        ("with tf.name_scope(n): y = tf.floor(x)", "tf.floor", "tf.floor(x)", "x"),
        ("y = tf.cast(tf.cast(p, tf.int32), tf.float32)", "tf.cast", "tf.cast(p, tf.int32)", "p"),
        ("h = tf.maximum(0., 1. - y)", "tf.maximum", "tf.maximum(0.0, 1.0 - y)", "1.0 - y"),
        ("q = x // step", "//", "x // step", "x"),
        ("d = 10.0 * tf.math.log(p) / tf.math.log(10.0)", "tf.math.log", "tf.math.log(p)", "p"),
        ("d = np.log(2 * n) + tf.math.log(p)", "tf.math.log", "tf.math.log(p)", "p"),
        ("d = tf.math.log(np.log(n) * p)", "tf.math.log", "tf.math.log(np.log(n) * p)", "np.log(n) * p"),
        ("i = np.argmax(p)", "np.argmax", "np.argmax(p)", "p"),
        ("y = tf.round(x) if n > 0 else x", "tf.round", "tf.round(x)", "x"),
        ("y = elu(relu(x)) + elu(z)", "tf.nn.elu", "elu(relu(x))", "relu(x)"),
        ("d = x - -(y + z)", "-", "x - -(y + z)", "x"),
        ("y = a / 2 + b / c", "/", "b / c", "b"),
        ("y = a / 2", "/", "a / 2", "a"),
        ("e = tf.sqrt(y_true) - tf.sqrt(p)", "tf.sqrt", "tf.sqrt(p)", "p"),
        ("e = tf.sqrt(y_true)", "tf.sqrt", "tf.sqrt(y_true)", "y_true"),
        ("m = (labels > 0) & (p > limit)", ">", "p > limit", "p"),
    ],
)
def test_the_call_is_found_on_the_line_as_the_user_wrote_it(line: str, api: str, text: str, subject: str) -> None:
    call = call_on(line, api)

    assert call is not None
    assert (call.text, call.subject) == (text, subject)


def test_of_several_calls_the_one_with_the_variable_is_chosen() -> None:
    line = "m = (p > limit) & (q > limit)"
    named, other = call_on(line, ">", "q"), call_on("z = tf.abs(a) + tf.abs(b)", "tf.abs", "b")

    assert call_on(line, ">") is None
    assert named is not None
    assert named.text == "q > limit"
    assert other is not None
    assert other.text == "tf.abs(b)"


@pytest.mark.parametrize(
    ("line", "api", "calls"),
    [
        ("y = tf.exp(tf.exp(x)) + tf.exp(z)", "tf.exp", ["tf.exp(x)", "tf.exp(tf.exp(x))", "tf.exp(z)"]),
        ("y = tf.map_fn(lambda row: tf.exp(row), tf.exp(x))", "tf.exp", ["tf.exp(x)"]),
        ("y = sum([tf.exp(row) for row in x]) + tf.exp(z)", "tf.exp", ["tf.exp(z)"]),
        ("y = tf.exp(1.0) * np.exp(x) * tf.exp(z)", "tf.exp", ["tf.exp(z)"]),
        ("y = tf.exp(", "tf.exp", []),
    ],
)
def test_calls_are_listed_in_the_order_in_which_they_create_ops(line: str, api: str, calls: list[str]) -> None:
    assert [call.text for call in calls_in_order(line, api)] == calls


def test_a_power_that_is_not_whole_is_not_exchanged_for_another() -> None:
    line = "y = tf.pow(tf.pow(a, 0.5) + tf.pow(b, 2), 0.3)"
    inner, square = (call_on(line, "tf.pow", name) for name in ("a", "b"))

    assert inner is not None
    assert fractional_power_on(line, inner) == inner
    assert square is not None
    assert fractional_power_on(line, square).arguments[1] == "0.3"


@pytest.mark.parametrize(
    ("line", "one", "joined"),
    [
        ("m = (x > 0) & (y < 1)", "y < 1", (("x", ">", "0"), ("y", "<", "1"))),
        ("m = tf.logical_and(x > 0, y < 1)", "x > 0", (("x", ">", "0"), ("y", "<", "1"))),
        ("m = tf.logical_or(x > 0, y < 1)", "x > 0", None),
        ("m = (x > 0) | (y < 1)", "x > 0", None),
        ("m = tf.where((x > 0) & (y < 1), z > 0, 0)", "z > 0", None),
        ("m = (0 < x < 2) & (y < 1)", "y < 1", None),
        ("m = (x == 0) & (y < 1)", "y < 1", None),
    ],
)
def test_only_two_inequalities_that_both_hold_are_joined(line: str, one: str, joined: object) -> None:
    found = conditions_joined(line, one)

    assert (found[1:] if found is not None else None) == joined


@pytest.mark.parametrize(
    ("condition", "opposite"),
    [
        ("x > 0", "x <= 0"),
        ("x != 0", "x == 0"),
        ("0 < x < 1", "~(0 < x < 1)"),
        ("x in known", "~(x in known)"),
        ("mask", "~mask"),
        ("a | b", "~(a | b)"),
    ],
)
def test_the_opposite_of_a_condition_is_code(condition: str, opposite: str) -> None:
    assert negated(condition) == opposite


@pytest.mark.parametrize(
    ("expression", "sides"), [("a - b", ("a", "b")), ("a + b", None), ("-b", None), ("d = a - b", None), ("a -", None)]
)
def test_only_a_difference_has_the_sides_of_one(expression: str, sides: tuple[str, str] | None) -> None:
    assert sides_of(expression, "-") == sides


@pytest.mark.parametrize(
    "line",
    ["", "y = tf.round(", "    x, y)", "y = other(x)", "é ü", "y = tf.round()", "tf.round(*a)", "tf.round(x, **more)"],
)
def test_a_line_that_does_not_show_the_call_is_not_guessed_at(line: str) -> None:
    assert call_on(line, "tf.round") is None


def test_an_op_that_no_function_of_the_user_created_has_no_call() -> None:
    assert call_on("y = tf.round(x)", None) is None


def test_the_innermost_call_is_what_has_to_be_made_safe() -> None:
    call = innermost_call("alpha * tf.math.log(x)")

    assert call is not None
    assert call.with_subject("safe") == "tf.math.log(safe)"


@pytest.mark.parametrize("head", ["self.parts[0].round", "(lambda value: tf.round(value)).round", "parts['a'].round"])
def test_a_function_that_is_looked_up_is_no_operator(head: str) -> None:
    call = call_on(f"y = {head}(x)", "tf.round")

    assert call is not None
    assert call.with_subject("v") == f"{head}(v)"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a"], "`a`"),
        (["a", "b"], "`a` and `b`"),
        (["a", "b", "c"], "`a`, `b` and `c`"),
        (["a", "b", "c", "d"], "`a`, `b` and 2 more variables"),
    ],
)
def test_names_are_listed_as_far_as_anybody_reads(names: list[str], said: str) -> None:
    assert quoted(names) == said


def rounded(line: str | None, api: str | None = "tf.round", kind: str = "Round") -> Finding:
    graph = Graph()
    op = graph.op(kind, graph.variable("quantiser/step"), passes="none", api=api, line=line)
    graph.target(graph.op("Mean", graph.op("Mul", op, graph.variable("kernel"))))
    graph.ask("quantiser/step")
    graph.ask("kernel", FINE)
    return graph.only_finding()


@pytest.mark.parametrize(
    ("line", "api", "kind", "code"),
    [
        ("y = tf.round(x)", "tf.round", "Round", "`x + tf.stop_gradient(tf.round(x) - x)`"),
        (
            "y = keras.ops.floor(x * 4) / 4",
            "keras.ops.floor",
            "Floor",
            "`v = x * 4`, then `v + keras.ops.stop_gradient(keras.ops.floor(v) - v)`",
        ),
        ("q = x // self.step", "//", "FloorDiv", "`v = x / self.step`, then `v + tf.stop_gradient(tf.floor(v) - v)`"),
        (None, None, "Round", "stop_gradient("),
    ],
)
def test_rounding_is_passed_straight_through_in_the_users_own_words(
    line: str | None, api: str | None, kind: str, code: str
) -> None:
    assert code in rounded(line, api, kind).fix


def test_braces_in_the_users_code_are_left_alone() -> None:
    assert '{"a": x}["a"]' in rounded("y = tf.round({'a': x}['a'])").fix.replace("'", '"')


def test_without_a_line_the_layer_says_where() -> None:
    graph = Graph()
    graph.layers.append(Layer("functional_1/dense_1", "dense", "Dense"))
    relu = graph.op("Relu", graph.variable("dense/kernel"), name="functional_1/dense_1/Relu")
    graph.gradient(relu, FINE)
    graph.target(graph.op("Mean", relu))
    graph.ask("dense/kernel", ZERO)

    assert "(in layer `dense`)" in graph.only_finding().message


def test_a_path_of_any_system_is_told_by_its_last_part() -> None:
    graph = Graph()
    op = graph.op("Round", graph.variable("x"), passes="none", api="tf.round", line="y = tf.round(x)")
    graph.sources[0] = type(graph.sources[0])("C:\\work\\net.py", 3, "call", "y = tf.round(x)")
    graph.target(op)
    graph.ask("x")

    assert "(net.py:3)" in graph.only_finding().message


def test_a_comparison_becomes_a_soft_step_the_right_way_round() -> None:
    def fix_of(kind: str, api: str) -> str:
        graph = Graph()
        line = f"mask = {api}(x, self.limit)"
        mask = graph.op(kind, graph.variable("limit"), passes="not_differentiable", dtype="bool", api=api, line=line)
        graph.target(graph.op("Mean", graph.op("Mul", graph.op("Cast", mask, passes="dtype"))))
        graph.ask("limit")
        return graph.only_finding().fix

    assert "`tf.sigmoid((x - self.limit) / 0.1)`" in fix_of("Greater", "tf.greater")
    assert "`tf.sigmoid((self.limit - x) / 0.1)`" in fix_of("Less", "tf.less")


def test_chosen_boxes_are_not_to_be_interpolated() -> None:
    line = "kept = tf.image.non_max_suppression(boxes, self.scores, 5)"

    finding = rounded(line, "tf.image.non_max_suppression", "NonMaxSuppressionV3")

    assert finding.cause == "nondiff_index"
    assert "selects boxes by their indices" in finding.message
    assert "`tf.nn.sigmoid_cross_entropy_with_logits(labels=on, logits=self.scores)`" in finding.fix


def test_a_position_by_an_old_backend_of_keras_has_the_remedy_of_any_other() -> None:
    """Such a function is no public one of TensorFlow's: the op tells what it does."""
    graph = Graph()
    lengths = graph.op("MatMul", graph.variable("kernel"))
    place = graph.op("ArgMax", lengths, passes="none", dtype="int64", line="return K.one_hot(K.argmax(x, 1), 3)")
    chosen = graph.op("OneHot", place, passes="dtype")
    graph.target(graph.op("Mean", graph.op("Mul", chosen, graph.variable("head"))))
    graph.ask("kernel")
    graph.ask("head", FINE)

    finding = graph.only_finding()

    assert finding.cause == "nondiff_index"
    assert "softmax" in finding.fix


def test_reports_that_are_made_at_the_same_time_do_not_mix_up_their_layers() -> None:
    """A server makes them in threads of its own. Here another one asks for its layers between any two lines."""
    others = [graph_in_layers(Layer("scope", f"other {number}", "Dense")) for number in range(9)]
    asked: list[str] = []

    def another(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != names.__file__:
            return None
        sys.settrace(None)
        asked.extend(layer_of(other, 0) for other in others)
        sys.settrace(another)
        return another

    trace = graph_in_layers(Layer("scope", "own", "Dense"))
    traced = sys.gettrace()
    sys.settrace(another)
    try:
        found = layer_of(trace, 0)
    finally:
        sys.settrace(traced)

    assert found == "own"
    assert asked == [f"other {number}" for number in range(9)] * (len(asked) // 9)
    assert asked


def test_no_text_ends_with_its_first_line() -> None:
    """A string on a line of its own, outside of brackets, is not part of the text in the line before it."""
    modules = sorted(Path(str(analyse.__file__)).parent.rglob("*.py"))
    lost = [f"{module.name}:{line}" for module in modules for line in _bare_strings(module.read_text(encoding="utf-8"))]

    assert len(modules) > 150
    assert lost == []
    assert list(_bare_strings('COST = "cut off "\n"here."\n')) == [2]


def test_no_expression_is_left_in_a_text() -> None:
    """Templates have names in braces; an expression in braces is a piece of an f-string without its `f`."""
    left = [
        f"{module.name}:{line}"
        for module in sorted(Path(str(analyse.__file__)).parent.rglob("*.py"))
        for line in _expressions_in(module.read_text(encoding="utf-8"))
    ]

    assert left == []
    assert list(_expressions_in('FIX = f"{a}" "use `{terms[0].name}`"\n')) == [1]
    assert list(_expressions_in('FIX = "use `{x}`" f" of {b.name}"\n')) == []


def _expressions_in(source: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\{\w+[.\[(]", node.value):
            yield node.lineno


def _bare_strings(source: str) -> Iterator[int]:
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Constant, ast.JoinedStr)):
            is_text = isinstance(node.value, ast.JoinedStr) or isinstance(node.value.value, str)
            if is_text and '"""' not in lines[node.lineno - 1]:
                yield node.lineno


def graph_in_layers(*layers: Layer) -> Trace:
    graph = Graph()
    graph.op("Relu", name="scope/Relu")
    graph.layers.extend(layers)
    return graph.trace()
