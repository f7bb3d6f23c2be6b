"""The user's source as a syntax tree, and edits of it."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from tb_gradflow.analyse.user_code.code import Code, Program, program_of
from tb_gradflow.analyse.user_code.draft import Draft
from tb_gradflow.analyse.user_code.library import library_for
from tb_gradflow.record.schema import Layer, Passage, Source, Trace


def code_of(text: str, line: int = 1) -> Code:
    return Code(Passage("model.py", line, text))


def call_in(code: Code, name: str) -> ast.Call:
    calls = [node for node in ast.walk(code.tree) if isinstance(node, ast.Call)]
    return next(node for node in calls if ast.unparse(node.func).endswith(name))


def test_an_edit_is_whole_lines_with_their_indentation() -> None:
    code = code_of("def loss(p):\n    hard = tf.round(p)  # decide\n    return hard\n", line=10)

    edit = Draft(code).replace(call_in(code, "round"), "p").edit()

    assert edit is not None
    assert (edit.file, edit.line, edit.end_line) == ("model.py", 11, 11)
    assert edit.before == "    hard = tf.round(p)  # decide"
    assert edit.after == "    hard = p  # decide"


def test_letters_of_several_bytes_do_not_shift_an_edit() -> None:
    code = code_of('x = f("größe", tf.round(ö))')

    edit = Draft(code).replace(call_in(code, "round"), "ö").edit()

    assert edit is not None
    assert edit.after == 'x = f("größe", ö)'


def test_a_call_over_several_lines_is_replaced_as_a_whole() -> None:
    code = code_of("y = tf.round(\n    x,\n)\nz = y")

    edit = Draft(code).replace(call_in(code, "round"), "x").edit()

    assert edit is not None
    assert (edit.line, edit.end_line, edit.after) == (1, 3, "y = x")


def test_what_is_no_python_afterwards_is_no_edit() -> None:
    code = code_of("y = tf.round(x)")

    assert Draft(code).replace(call_in(code, "round"), "(").edit() is None


@pytest.mark.parametrize("insert", [Draft.insert_before, Draft.insert_after])
def test_nothing_is_inserted_beside_a_statement_that_does_not_begin_its_line(
    insert: Callable[[Draft, ast.stmt, str], Draft],
) -> None:
    code = code_of("a = made(); n = 1\nb = 2")
    _, second, last = code.tree.body

    assert insert(Draft(code), second, "c = n").edit() is None
    assert insert(Draft(code), last, "c = n").edit() is not None


def test_changes_that_overlap_are_no_edit() -> None:
    code = code_of("y = tf.round(tf.abs(x))")

    draft = Draft(code).replace(call_in(code, "round"), "x").replace(call_in(code, "abs"), "x")

    assert draft.edit() is None


def test_changes_that_overlap_are_no_edit_even_if_the_result_is_python() -> None:
    code = code_of("y = -tf.abs(x)")
    inner = call_in(code, "abs")
    outer = code.parent(inner)
    assert outer is not None

    assert Draft(code).replace(outer, "x").edit() is not None
    assert Draft(code).replace(outer, "x").replace(inner, "-x").edit() is None


def test_nothing_changed_is_no_edit() -> None:
    code = code_of("y = tf.round(x)")

    assert Draft(code).edit() is None
    assert Draft(code).replace(call_in(code, "round"), "tf.round(x)").edit() is None


def test_statements_before_a_changed_one_keep_their_order() -> None:
    code = code_of("if a:\n    tf.round(x)")
    statement = code.statement(call_in(code, "round"))
    assert statement is not None

    draft = Draft(code).insert_before(statement, "z = 1").insert_before(statement, "b = 2")
    edit = draft.replace(call_in(code, "round"), "x").edit()

    assert edit is not None
    assert (edit.line, edit.end_line, edit.after) == (2, 2, "    z = 1\n    b = 2\n    x")


def test_a_statement_before_a_function_stands_before_its_decorators() -> None:
    code = code_of("class Loss:\n    @tf.function\n    def call(self):\n        pass")
    function = next(node for node in ast.walk(code.tree) if isinstance(node, ast.FunctionDef))

    edit = Draft(code).insert_before(function, "scale = 1.0").edit()

    assert edit is not None
    assert (edit.line, edit.after) == (2, "    scale = 1.0\n    @tf.function")


def test_statements_after_the_last_line_are_appended_to_it() -> None:
    code = code_of("a = 1; b = 2  # both")

    edit = Draft(code).insert_after(code.tree.body[0], "c = 3").edit()

    assert edit is not None
    assert edit.after == "a = 1; b = 2  # both\nc = 3"


def test_a_value_is_computed_once_under_a_name_that_is_free() -> None:
    code = code_of("def loss(value, soft):\n    return tf.round(value + soft)")
    draft = Draft(code)
    given = call_in(code, "round").args[0]

    name = draft.computed_before(given, "value", "soft", "raw")
    edit = draft.replace(given, name).edit()

    assert name == "raw"
    assert edit is not None
    assert edit.after == "    raw = value + soft\n    return tf.round(raw)"


@pytest.mark.parametrize("text", ["x", "self.x", "x[0]", "x[:, 1:n]", "x[-1, ..., i]", "-1.5"])
def test_what_can_be_written_twice_needs_no_name(text: str) -> None:
    code = code_of(f"y = tf.round({text})")

    assert Draft(code).computed_before(call_in(code, "round").args[0], "value") == text


@pytest.mark.parametrize("text", ["x + 1", "f(x)", "f().x", "f()[0]", "x[f()]", "x[:, f():]", "x[:f()]", "x[0, f()]"])
def test_what_may_differ_the_second_time_is_computed_before(text: str) -> None:
    code = code_of(f"y = tf.round({text})")

    assert Draft(code).computed_before(call_in(code, "round").args[0], "value") == "value"


@pytest.mark.parametrize(
    "text", ["f = lambda v: tf.round(v + 1)", "y = [tf.round(v + 1) for v in w]", "y = a and tf.round(v + 1)"]
)
def test_nothing_is_computed_before_what_may_run_later_or_never(text: str) -> None:
    code = code_of(text)

    assert Draft(code).computed_before(call_in(code, "round").args[0], "value") == ""


def test_a_statement_behind_another_on_its_line_gets_none_in_front() -> None:
    code = code_of("a = 1; y = tf.round(v + 1)")

    assert Draft(code).computed_before(call_in(code, "round").args[0], "value") == ""


@pytest.mark.parametrize(
    ("imports", "body", "expected"),
    [
        ("import tensorflow as tf", "y = tf.round(x)", "tf.nn.softmax(x)"),
        ("import tensorflow.compat.v1 as tf1", "y = tf1.round(x)", "tf1.nn.softmax(x)"),
        ("import keras", "y = keras.ops.round(x)", "keras.ops.softmax(x)"),
        ("from keras import ops", "y = ops.round(x)", "ops.softmax(x)"),
        ("from helpers import *", "y = tf.round(x)", "tf.nn.softmax(x)"),
        ("from tensorflow.keras import backend as K\nimport tensorflow as tf", "y = K.round(x)", "tf.nn.softmax(x)"),
    ],
)
def test_functions_are_called_as_the_file_calls_them(imports: str, body: str, expected: str) -> None:
    code = code_of(f"{imports}\n{body}")
    modules = Program((code,)).modules("model.py")

    library = library_for(code, call_in(code, "round"), modules)

    assert library is not None
    assert library("softmax", "x") == expected


BLOCKS = """def loss(
    p,
):
    if p:
        y = tf.round(
            p
        )
    return y
"""


def kinds_at(code: Code, line: int) -> list[str]:
    return [type(each).__name__ for each in code.statements_at(line)]


def test_a_line_belongs_to_the_innermost_statement_and_to_blocks_that_begin_on_it() -> None:
    code = code_of(BLOCKS, line=10)

    kinds = [kinds_at(code, line) for line in range(9, 19)]

    assert kinds[1:4] == [["FunctionDef"]] * 3
    assert kinds[4:9] == [["If"], ["Assign"], ["Assign"], ["Assign"], ["Return"]]
    assert kinds[0] == kinds[9] == []


@pytest.mark.parametrize(
    ("text", "kinds", "calls"),
    [
        ("if f(a): y = g(a)", ["Assign", "If"], ["f(a)", "g(a)"]),
        ("def call(v): return f(g(v))", ["Return", "FunctionDef"], ["g(v)", "f(g(v))"]),
        ("y = f(a); z = g(a)", ["Assign", "Assign"], ["f(a)", "g(a)"]),
        ("with f(a) as b: y = g(b); z = h(y)", ["Assign", "Assign", "With"], ["f(a)", "g(b)", "h(y)"]),
    ],
)
def test_all_statements_on_a_line_count(text: str, kinds: list[str], calls: list[str]) -> None:
    code = code_of(text, line=3)

    assert kinds_at(code, 3) == kinds
    assert [ast.unparse(each) for each in code.parts_at(3) if isinstance(each, ast.Call)] == calls


def test_the_parts_on_a_line_of_a_long_statement_are_told_apart_from_the_others() -> None:
    code = code_of("y = f(\n    a,\n    b + 1,\n)", line=7)

    assert [ast.unparse(each) for each in code.parts_at(9)] == ["b", "1", "b + 1", "f(a, b + 1)"]
    assert [ast.unparse(each) for each in code.parts_around(9)] == ["y", "f", "a", "b", "1", "b + 1", "f(a, b + 1)"]


def test_a_passage_is_found_by_its_file_and_its_lines() -> None:
    first, second = code_of("a = 1\nb = 2", line=5), Code(Passage("loss.py", 5, "c = 3"))
    program = Program((first, second))

    assert [program.at("model.py", line) for line in (4, 5, 6, 7)] == [None, first, first, None]
    assert program.at("loss.py", 5) is second


def test_what_is_written_over_several_lines_is_joined_unless_it_has_brackets() -> None:
    code = code_of("y = (a +\n     f(\n    b))")
    total = code.parts_around(1)[-1]

    assert code.written(total) == "a + f(b)"
    assert code.written(call_in(code, "f")) == "f(\n    b)"
    assert code.operand(total) == "(a + f(b))"


def test_the_block_of_a_statement_is_the_branch_that_it_is_in() -> None:
    code = code_of("if a:\n    f()\nelse:\n    g()\n    h()")

    blocks = [code.block(statement) for name in "fgh" if (statement := code.statement(call_in(code, name)))]

    assert [[ast.unparse(each) for each in block] for block in blocks] == [["f()"], ["g()", "h()"], ["g()", "h()"]]
    assert code.block(code.tree.body[0]) == code.tree.body


def test_if_all_wanted_names_are_taken_one_is_numbered() -> None:
    code = code_of("def f(soft, soft_2):\n    return soft_2")

    [inside, *_] = code.statements_at(2)
    assert code.free_name(inside, "soft") == "soft_3"


def test_only_imports_by_name_have_a_module() -> None:
    code = code_of("import os.path\nimport keras.ops as K\nfrom . import layers\nfrom keras import losses as L, ops")

    assert code.imports == {"os": "os", "K": "keras.ops", "L": "keras.losses", "ops": "keras.ops"}


MODEL = 'model = Sequential([Dense(8, activation="relu"), Dense(1)])'


def trace_of(*passages: Passage, line_in: str = "") -> Trace:
    layers = (Layer("sequential_1/first_1", "first", "Dense"), Layer("sequential_1/last_1", "last", "Dense"))
    sources = (Source(line_in, 1, "", ""),) if line_in else ()
    return Trace(0, (), (), (), (), (), layers, sources, (), passages=passages)


def files_of(trace: Trace) -> list[str]:
    return [code.passage.file for code in program_of(trace).passages]


def test_of_files_without_the_names_of_layers_the_one_that_makes_such_layers_is_the_program() -> None:
    made, other = Passage("model.py", 1, MODEL), Passage("tools.py", 1, 'print("relu")')

    assert files_of(trace_of(other, made)) == ["model.py"]


def test_a_second_version_of_the_program_leaves_open_which_one_is_meant() -> None:
    first, second = Passage("model.py", 1, MODEL), Passage("model_old.py", 1, MODEL)

    assert files_of(trace_of(first, second)) == []
    assert files_of(trace_of(first, second, line_in="model.py")) == ["model.py"]


def test_files_of_which_each_names_other_layers_are_one_program() -> None:
    one, two = Passage("one.py", 1, 'Dense(8, name="first")'), Passage("two.py", 1, 'Dense(1, name="last")')

    assert files_of(trace_of(one, two)) == ["one.py", "two.py"]


def test_a_file_that_names_only_what_the_file_of_the_step_names_is_another_program() -> None:
    made = Passage("model.py", 1, 'Dense(8, name="first")')
    other = Passage("other.py", 1, 'Dense(8, name="first")\nDense(1, name="last")')
    rest = Passage("rest.py", 1, 'Dense(1, name="last")')

    assert files_of(trace_of(Passage("other.py", 1, made.text), made, line_in="model.py")) == ["model.py"]
    assert files_of(trace_of(rest, made, line_in="model.py")) == ["rest.py", "model.py"]
    assert files_of(trace_of(made, other, line_in="other.py")) == ["other.py"]
