"""What readers of Python code ask its syntax tree."""

from __future__ import annotations

import ast

from tb_gradflow.record.python import (
    calls_within,
    imports_of,
    is_number,
    lines_of,
    name_of,
    names_bound,
    names_read,
    own_nodes,
    parameters_in,
    parsed,
    reads_of,
    targets_of,
    uses_of,
    values_of,
)

CODE = """
def step(x, *, rate):
    loss = scale = tf.reduce_mean(f(x))
    loss += rate

    def inner(y):
        return tf.square(y) + hidden

    return loss
"""


def tree(code: str) -> ast.Module:
    found = parsed(code)
    assert found is not None
    return found


def test_names_that_are_read_and_those_that_are_bound() -> None:
    assert names_read(tree("y = f(x)[i]\nz.w = y")) == {"f", "x", "i", "y", "z"}
    assert names_bound(tree("y = f(x)\nfor k, (a, b) in y: del k")) == {"y", "k", "a", "b"}
    assert parameters_in(tree(CODE)) == {"x", "rate", "y"}


def test_a_name_is_used_where_it_is_read_and_where_it_is_bound() -> None:
    [step] = tree(CODE).body

    assert [name.lineno for name in uses_of(step, "loss")] == [3, 4, 9]
    assert [name.lineno for name in reads_of(step, "loss")] == [9]
    assert uses_of(step) == []


def test_every_name_of_a_chain_of_assignments_gets_the_value() -> None:
    [step] = tree(CODE).body

    assert [ast.unparse(value) for value in values_of(step, "scale")] == ["tf.reduce_mean(f(x))"]
    assert values_of(tree("a, b = f()"), "a") == []


def test_own_nodes_are_in_the_order_of_the_text_and_leave_out_what_is_in_inner_functions() -> None:
    [step] = tree(CODE).body

    own = [node for node in own_nodes(step) if isinstance(node, (ast.Name, ast.FunctionDef))]

    assert [node.name if isinstance(node, ast.FunctionDef) else node.id for node in own] == [
        *("loss", "scale", "tf", "f", "x", "loss", "rate", "inner", "loss"),
    ]


def test_calls_are_found_by_the_last_part_of_what_is_called() -> None:
    code = tree("tf.math.log(f(x))\nlog(y)\n(lambda z: z)(1)")

    assert [ast.unparse(call) for call in calls_within(code, "log")] == ["tf.math.log(f(x))", "log(y)"]
    assert [name_of(call.func) for call in calls_within(code)] == ["log", "log", "", "f"]


def test_lines_reach_from_the_first_line_of_a_node_to_the_last() -> None:
    [step] = tree(CODE).body

    assert lines_of(step) == range(2, 10)
    assert isinstance(step, ast.FunctionDef)
    assert lines_of(step.body[0], step.body[1]) == range(3, 5)


def test_targets_are_those_of_assignments_of_every_kind() -> None:
    statements = tree("a = b = 1\nc: int = 2\nd += 3\nf(e)").body

    assert [[ast.unparse(target) for target in targets_of(each)] for each in statements] == [
        ["a", "b"],
        ["c"],
        ["d"],
        [],
    ]


def test_an_imported_name_stands_for_its_module() -> None:
    code = tree(
        "import numpy as np, keras.ops\nfrom tensorflow import math\nfrom keras import ops as k\nfrom . import x"
    )

    assert imports_of(code) == {
        "np": "numpy", "keras": "keras", "math": "tensorflow.math", "k": "keras.ops",
    }  # fmt: skip


def test_the_first_text_that_is_python_counts() -> None:
    assert parsed("if x:", "if x:\n    pass", "y") is not None
    assert isinstance(tree("if x:\n    pass").body[0], ast.If)
    assert parsed("if x:") is None
    assert parsed("\0") is None


def test_numbers_that_are_written_out() -> None:
    assert all(map(is_number, ("1", "-2.5", "1e-7")))
    assert not any(map(is_number, ("x", "f(1)", "'1'", "1 +")))
    assert is_number(ast.Constant(3))
