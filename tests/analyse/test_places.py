"""Where an op is written in the user's line: of several calls and operators, the one that created it."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.status import State
from tb_gradflow.analyse.user_code.place import Place, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.schema import Passage, Source
from tests.analyse.builders import Graph

ROUND, GREATER, FLOOR = ("Round", "tf.round"), ("Greater", None), ("FloorDiv", None)

Kind = tuple[str, str | None]


def places_of(text: str, *ops: Kind, line: int = 1, file: str = "model.py") -> list[Place | None]:
    """Where each of these ops is written, all of which are of this line, and of which the first cuts off `w`."""
    graph = Graph()
    value = graph.variable("layer/w")
    for kind, api in ops:
        value = graph.op(kind, value, api=api, line="the line")
    graph.target(value)
    graph.sources[0] = Source(file, line, "call", "the line")
    trace = replace(graph.trace(), passages=(Passage("model.py", 1, text),))
    suspect = Suspect(
        Measured(Topology(trace), None, None, ()), State(0, "disconnected", 0, None, None, receives=False), 1, 0
    )
    group = Group(Verdict("nondiff_rounding", "error"), suspect, (suspect.state,), 1)
    return [place_of_group(group, op) for op in range(1, len(ops) + 1)]


def written(text: str, *ops: Kind, line: int = 1) -> list[str | None]:
    found = places_of(text, *ops, line=line)
    return [ast.unparse(each.node) if each is not None and each.node is not None else None for each in found]


@pytest.mark.parametrize(
    ("text", "op", "where"),
    [
        ("y = tf.round(x)", ROUND, "tf.round(x)"),
        ("y = tf.math.round(x)", ROUND, "tf.math.round(x)"),
        ("y = tf.floor(x)", ROUND, None),
        ("y = K.rint(x)", ("Round", "tf.math.round"), "K.rint(x)"),
        ("y = x > 1", GREATER, "x > 1"),
        ("y = 1 < x", GREATER, "1 < x"),
        ("y = x >= 1", GREATER, None),
        ("y = 0 < x < 1", GREATER, None),
        ("y = x // 2", FLOOR, "x // 2"),
        ("y = x % 2", FLOOR, None),
    ],
)
def test_an_op_is_made_by_its_function_or_operator(text: str, op: Kind, where: str | None) -> None:
    assert written(text, op) == [where]


@pytest.mark.parametrize(
    "line",
    ["y = tf.round(x) + tf.round(1.5)", "y = tf.round(1.5) * tf.round(x)", "y = np.round(a) + tf.round(x)"],
)
def test_what_python_or_numpy_computes_makes_no_op(line: str) -> None:
    assert written(line, ROUND) == ["tf.round(x)"]
    assert written(f"y = call(\n    {line[4:]},\n    x,\n)", ROUND, line=3) == ["tf.round(x)"]


def test_numbers_alone_are_compared_by_python() -> None:
    assert written("y = (3 > 2) & (x > 1)", GREATER) == ["x > 1"]


def test_the_numpy_of_tensorflow_makes_ops() -> None:
    assert written("import tensorflow.experimental.numpy as np\ny = np.round(x)", ROUND, line=2) == ["np.round(x)"]
    assert written("import numpy as np\ny = np.round(x)", ROUND, line=2) == [None]


def test_as_many_ops_as_calls_are_matched_in_their_order() -> None:
    assert written("y = tf.round(a) + tf.round(b)", ROUND, ROUND) == ["tf.round(a)", "tf.round(b)"]
    assert written("y = (a > 1) & (2 < b)", GREATER, GREATER) == ["a > 1", "2 < b"]


def test_of_two_comparisons_the_one_with_the_operator_of_the_op_is_meant() -> None:
    """For an array `n`, the other is NumPy's."""
    assert written("y = (2 < n) & (x > 1)", GREATER) == ["x > 1"]


def test_of_two_calls_the_one_that_names_the_variable_is_meant() -> None:
    assert written("y = tf.round(v) + tf.round(self.w) + tf.round(w)", ROUND) == ["tf.round(w)"]
    assert written("y = (v > 1) & (w > 2)", GREATER) == ["w > 2"]


def test_of_nested_parts_the_innermost_is_meant() -> None:
    assert written("y = tf.round(tf.round(a) + 1)", ROUND) == ["tf.round(a)"]
    assert written("y = a // b // c", FLOOR) == ["a // b"]


def test_of_comparisons_beside_each_other_none_is_guessed() -> None:
    assert written("y = (a > 1) & (b > 2)", GREATER) == [None]
    assert written("y = tf.round(a) + tf.round(b)", ROUND) == ["tf.round(a)"]


def test_a_line_of_another_file_is_nowhere() -> None:
    assert places_of("y = tf.round(x)", ROUND, file="other.py") == [None]
    assert places_of("y = tf.round(x)", ROUND, line=2) == [None]


@pytest.mark.parametrize(
    ("text", "op", "subject"),
    [
        ("tf.round(x)", ROUND, "x"),
        ("tf.round(2.0, x)", ROUND, "x"),
        ("tf.round(name='n', x=v)", ROUND, "v"),
        ("tf.round(name=v)", ROUND, None),
        ("x.round()", ROUND, "x"),
        ("x.round(name=v)", ROUND, None),
        ("round()", ROUND, None),
        ("tf.round(*x)", ROUND, None),
        ("tf.round(x, **options)", ROUND, None),
        ("x > 1", GREATER, "x"),
        ("1 < x", GREATER, "x"),
        ("2 // x", FLOOR, "x"),
        ("~x", ("LogicalNot", "~"), None),
    ],
)
def test_the_subject_is_the_first_value_that_is_no_number(text: str, op: Kind, subject: str | None) -> None:
    [place] = places_of(f"y = {text}", op)

    assert place is not None
    assert place.node is not None
    assert (ast.unparse(place.subject) if place.subject is not None else None) == subject


def test_the_statement_is_that_of_the_line_if_the_line_does_not_show_the_op() -> None:
    [place] = places_of("import tensorflow as tf\ny = f(x)", ROUND, line=2)

    assert place is not None
    assert place.node is None
    assert place.statement is not None
    assert ast.unparse(place.statement) == "y = f(x)"
    assert place.library is not None
    assert place.library("round", "x") == "tf.round(x)"


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        ("f(a, b)", "b"),
        ("f(a, axis=c)", "c"),
        ("f(a)", None),
        ("f(a, *b)", None),
        ("f(*a, b)", None),
        ("f(a, b, *c)", "b"),
        ("f(a, other=c)", None),
    ],
)
def test_an_argument_is_found_by_its_position_or_its_name(call: str, argument: str | None) -> None:
    [place] = places_of(f"y = {call}", ("Round", "f"))

    assert place is not None
    found = place.argument(1, "axis")
    assert (ast.unparse(found) if found is not None else None) == argument
