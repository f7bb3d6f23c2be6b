"""Fixes that keep a computation inside TensorFlow: its own functions instead of Python's and NumPy's."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator

from tb_gradflow.analyse.user_code.candidate import Candidate, candidates
from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.analyse.user_code.draft import Draft
from tb_gradflow.analyse.user_code.inside import Inside
from tb_gradflow.analyse.user_code.place import Place, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.python import FUNCTIONS, argument_of, calls_within, name_of, names_bound, variables_of
from tb_gradflow.record.report import Edit

_COST = "TensorFlow computes the same values."

_NUMPY = ("np", "numpy")
_WRAPPERS = ("numpy_function", "py_function", "py_func", "eager_py_func")


def inside(group: Group) -> Iterator[Candidate]:
    """The lines from the one where the value left TensorFlow to the last one that uses it outside."""
    place = place_of_group(group)
    if place is None or tensorflow_of(place) is None or group.verdict.severity == "info":
        return  # what may be meant as it is has no edit
    statement = place.statement
    if statement is None:
        return
    wrapped = calls_within(statement, *_WRAPPERS)
    if wrapped:
        yield from candidates(_COST, *(_unwrapped(place, call) for call in wrapped))
    else:
        yield from candidates(_COST, _translated_lines(place, statement))


def tensorflow_of(place: Place) -> str | None:
    """The name under which the file imports TensorFlow."""
    found = (name for name, module in place.modules.items() if module in ("tensorflow", "tensorflow.compat.v1"))
    return next(found, None)


def _translated_lines(place: Place, first: ast.stmt) -> Edit | None:
    code = place.code
    function = code.function(first)
    body = [node for node in ast.walk(function or code.tree) if isinstance(node, ast.stmt)]
    last = _request(place)
    # What follows the request for the gradient, such as `print(float(loss))`, is not on its path.
    end = last if last >= first.lineno else len(code.lines)
    simple = [each for each in body if _is_simple(each) and first.lineno <= each.lineno <= end]
    outside: set[str] = set()
    lists: set[str] = set()
    draft = place.draft()
    tensorflow = tensorflow_of(place) or "tf"
    for statement in sorted(simple, key=lambda each: each.lineno):
        if statement is not first and outside.isdisjoint(code.names(statement)):
            continue
        translated = _translated(statement, outside, tensorflow, lists)
        if statement is first and translated == ast.unparse(statement):
            # There is no explicit conversion: the function of NumPy or `math` was called with the tensor.
            translated = _translated(statement, None, tensorflow)
        own = _numpy_function(place, statement, None if statement is first else outside)
        if own is not None and translated is not None:
            called = _in_tensorflow(place, draft, own, statement, tensorflow)
            written = f"{ast.unparse(own)}("
            if called is None or translated.count(written) != 1:
                return None
            translated = translated.replace(written, f"{called}(")
        if translated is None:
            return None
        if translated != ast.unparse(statement):
            draft.replace(statement, translated)
        lists.update(_added_to(statement))
        outside.update(names_bound(statement), lists)
    return draft.edit()


def _request(place: Place) -> int:
    """The line of the passage in which the gradient is requested; 0 if that is somewhere else."""
    trace, target = place.group.trace, place.group.suspect.target
    number = trace.targets[target].source if target >= 0 else None
    if number is None or trace.sources[number].file != place.source.file:
        return 0
    line = trace.sources[number].line - place.code.passage.line + 1
    return line if 0 < line <= len(place.code.lines) else 0


def _translated(
    statement: ast.stmt, outside: set[str] | None, tensorflow: str, lists: Collection[str] = ()
) -> str | None:
    """The statement with TensorFlow's functions; `None` if one of its functions has no counterpart."""
    writer = Inside(tensorflow, outside, lists)
    text = ast.unparse(writer.visit(copy.deepcopy(statement)))
    return None if writer.stuck else text


def numpy_function_of(group: Group) -> str | None:
    """The user's own function that is given what has left TensorFlow, if it uses NumPy."""
    place = place_of_group(group)
    own = None if place is None or place.statement is None else _numpy_function(place, place.statement, None)
    return None if own is None else ast.unparse(own)


def _numpy_function(place: Place, statement: ast.stmt, outside: set[str] | None) -> ast.expr | None:
    """The user's own function that uses NumPy and is given one of the names; or, if `outside` is None, what this very
    statement converts."""
    for call in calls_within(statement):
        given = [node for each in (*call.args, *call.keywords) for node in ast.walk(each)]
        if outside is None:
            is_given = any(isinstance(node, ast.Call) and _converts(node) for node in given)
        else:
            is_given = any(isinstance(node, ast.Name) and node.id in outside for node in given)
        function = call.func
        is_own = isinstance(function, ast.Name) or (
            isinstance(function, ast.Attribute) and ast.unparse(function.value) == "self"
        )
        defined, _ = _definition(place, function) if is_given and is_own else (None, None)
        called = [ast.unparse(inner.func) for inner in calls_within(defined)] if defined else []
        if any(each.partition(".")[0] in _NUMPY for each in called):
            return function
    return None


def _converts(call: ast.Call) -> bool:
    """Whether a call returns an array of NumPy."""
    name = ast.unparse(call.func)
    return name.partition(".")[0] in _NUMPY or name.endswith(".numpy")


def _added_to(statement: ast.stmt) -> set[str]:
    """The list that a statement adds something to."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    if not isinstance(method, ast.Attribute) or method.attr not in ("append", "extend", "insert"):
        return set()
    return {method.value.id} if isinstance(method.value, ast.Name) else set()


def _is_simple(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr))


def _unwrapped(place: Place, call: ast.Call) -> Edit | None:
    """`tf.numpy_function(f, [x], ...)` as what `f` computes, in TensorFlow's functions."""
    code = place.code
    function, given = argument_of(call, 0, "func"), argument_of(call, 1, "inp")
    tensorflow = tensorflow_of(place) or "tf"
    if function is None or not isinstance(given, (ast.List, ast.Tuple)):
        return None
    arguments = ", ".join(code.written(each) for each in given.elts)
    if isinstance(function, ast.Attribute) and ast.unparse(function).partition(".")[0] in _NUMPY:
        writer = Inside(tensorflow, {"inside"})
        text = ast.unparse(writer.visit(ast.parse(f"{ast.unparse(function)}(inside)", mode="eval").body))
        if writer.stuck or not writer.changed:
            return None
        return place.draft().replace(call, f"{text.rpartition('(inside)')[0]}({arguments})").edit()
    defined, home = _definition(place, function)
    if defined is None or home is None:
        return None
    outside = {each.arg for each in defined.args.args} - {"self"}
    if isinstance(defined, ast.Lambda):
        writer = Inside(tensorflow, outside)
        body = ast.unparse(writer.visit(copy.deepcopy(defined)))
        return None if writer.stuck else place.draft().replace(call, f"({body})({arguments})").edit()
    draft = place.draft()
    called = _in_tensorflow(place, draft, function, call, tensorflow)
    return None if called is None else draft.replace(call, f"{called}({arguments})").edit()


def _in_tensorflow(place: Place, draft: Draft, function: ast.expr, at: ast.AST, tensorflow: str) -> str | None:
    """What to call instead of a function that uses NumPy: itself if the draft can translate it in its place, otherwise
    a translated copy that the draft inserts before the statement."""
    code, (defined, home) = place.code, _definition(place, function)
    if not isinstance(defined, ast.FunctionDef):
        return None
    translated = _translated_function(defined, {each.arg for each in defined.args.args} - {"self"}, tensorflow)
    if translated is None:
        return None
    if home is code:
        draft.replace(defined, translated.replace("\n", "\n" + code.indentation(defined)))
        return code.written(function)
    statement = code.statement(at)
    if statement is None or not isinstance(function, ast.Name) or not code.starts_a_line(statement):
        return None
    if any(isinstance(each, ast.Lambda) for each in code.around(at)):
        return None
    name = draft.free_name(at, f"{defined.name}_in_tensorflow")
    copied = translated.replace(f"def {defined.name}(", f"def {name}(", 1)
    draft.insert_before(statement, *copied.split("\n"))
    return name


def _definition(place: Place, function: ast.expr) -> tuple[ast.FunctionDef | ast.Lambda | None, Code | None]:
    """The definition that a function's name, or `self.name`, refers to, and the passage that contains it."""
    if isinstance(function, ast.Lambda):
        return function, place.code
    name = name_of(function)
    for code in (place.code, *place.program.of_file(place.source.file)):
        for node in ast.walk(code.tree):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node, code
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and name in variables_of(node):
                return node.value, code
    return None, None


def _translated_function(defined: ast.FunctionDef, outside: set[str], tensorflow: str) -> str | None:
    whole = copy.deepcopy(defined)
    known = set(outside)
    for statement in ast.walk(whole):
        if isinstance(statement, FUNCTIONS) and statement is not whole:
            return None
        if isinstance(statement, ast.stmt):
            known.update(names_bound(statement) if _is_simple(statement) else ())
    writer = Inside(tensorflow, known)
    whole.body = [writer.visit(each) for each in whole.body]
    whole.returns = None
    return None if writer.stuck else ast.unparse(whole)
