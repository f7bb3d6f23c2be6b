"""Tensors, other than variables, for which the user's code requests a gradient: which they are, and their names."""

from __future__ import annotations

import ast
import linecache
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import tensorflow as tf

from tb_gradflow.record.python import argument_of, calls_within, name_of, own_nodes, parsed, targets_of
from tb_gradflow.trace.graph.flat_ops import FlatOp, Ref
from tb_gradflow.trace.protection.local_variables import local_variables
from tb_gradflow.trace.source.frames import PACKAGE, Frame
from tb_gradflow.trace.source.statements import function_at, tree_of
from tb_gradflow.trace.source.user_line import is_users, users_frame
from tb_gradflow.trace.tf_internals.tapes import REQUESTS, flat_sources

# A longer call is not parsed.
_LINES = 12

_LONGEST_NAME = 30

_TENSORFLOW = os.sep + "tensorflow" + os.sep


@dataclass(frozen=True, slots=True)
class RequestedTensor:
    """A tensor for which a gradient is requested.

    Attributes:
        tensor: The tensor.
        ref: The flat op that produced or represents it; `None` if no op of the step uses it.
        name: The user's name for it.
        rebound: The name, if it was a variable's in the user's code before; empty otherwise.
    """

    tensor: Any
    ref: Ref | None
    name: str
    rebound: str = ""


def requested_tensors(
    sources: Any,
    is_known: Callable[[Any], bool],
    ref_of: Callable[[Any], Ref | None],
    ops: Sequence[FlatOp],
    frames: Sequence[Frame],
) -> Iterator[RequestedTensor]:
    """The tensors in the nested sources of one gradient call, except those that are known. `ref_of` returns the op that
    produced a tensor, `None` if there is none.

    Calls made by a library request tensors that do not concern the user: recomputing a block, for example. The value of
    a variable is handled as the variable, and a gradient is not a source of the forward computation.
    """
    caller = _caller(frames)
    if caller is None:
        return
    written = written_sources(caller, REQUESTS, ("sources", "source"), 1, sources)
    for place, source in enumerate(flat_sources(sources)):
        if not isinstance(source, tf.Tensor) or source.dtype in (tf.resource, tf.variant) or is_known(source):
            continue
        ref = ref_of(source)
        name = written[place] or _local_name(source)
        rebound = name if name is not None and was_variable(caller, name) else ""
        if ref is None:
            yield RequestedTensor(source, None, name or f"sources[{place}]", rebound)
        elif ops[ref.op].reads is None and not ops[ref.op].backward:
            name = name or _assigned(ops[ref.op]) or ops[ref.op].name.rpartition("/")[2]
            yield RequestedTensor(source, ref, name, rebound)


def is_answer(gradient: Any, source: Any, *, zeros_for_none: bool) -> bool:
    """Whether a gradient arrived for a tensor: zeros that the caller requested instead of None do not count."""
    if gradient is None or not zeros_for_none or not isinstance(gradient, tf.Tensor):
        return gradient is not None
    if not tf.is_symbolic_tensor(gradient):
        return True
    if gradient.op.type == "ZerosLike":
        return gradient.op.inputs[0] is not source
    value = tf.get_static_value(gradient)
    return value is None or bool(value.any())


def user_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame of the user's code; `None` if there is none."""
    return next((frame for frame in reversed(frames) if is_users(frame.file)), None)


def _caller(frames: Sequence[Frame]) -> Frame | None:
    """The frame that calls `gradient`, if it is the user's."""
    for frame in reversed(frames):
        if is_users(frame.file):
            return frame
        if not frame.file.startswith(PACKAGE) and _TENSORFLOW not in frame.file:
            return None
    return None


def written_sources(
    frame: Frame, functions: Sequence[str], keywords: Sequence[str], position: int, sources: Any
) -> list[str | None]:
    """The expression for each source in the user's call of one of `functions`, which takes the nested sources by
    keyword or as the argument at `position`; `None` for sources without a name in the call.
    """
    call = _call_at(frame, functions)
    return list(_written(argument_of(call, position, *keywords) if call is not None else None, sources))


def _written(node: ast.expr | None, source: Any) -> Iterator[str | None]:
    """The names of the values in a nested structure, in the order of `tf.nest.flatten`, as far as its code shows
    them.
    """
    parts = _parts_of(source)
    if parts is None:
        yield None if node is None else _as_name(node)
        return
    for number, (place, part) in enumerate(parts):
        yield from _written(_part_of(node, number, place), part)


def _part_of(node: ast.expr | None, number: int, place: str) -> ast.expr | None:
    """The code for one part of a nested structure, where `node` is the code for the whole; `None` if it does not
    show.
    """
    if isinstance(node, ast.List | ast.Tuple):
        before = node.elts[: number + 1]
        return (
            before[-1] if len(before) > number and not any(isinstance(each, ast.Starred) for each in before) else None
        )
    if isinstance(node, ast.Dict):
        keys = (f"[{each.value!r}]" if isinstance(each, ast.Constant) else "" for each in node.keys)
        return next((value for key, value in zip(keys, node.values, strict=True) if key == place), None)
    base = None if node is None else _as_name(node)
    return None if base is None else ast.parse(base + place, mode="eval").body


def _parts_of(source: Any) -> list[tuple[str, Any]] | None:
    """The items of a nested structure, each with the suffix that selects it; `None` if it is not nested."""
    if isinstance(source, Mapping):
        return [(f"[{key!r}]", source[key]) for key in sorted(source)]
    if isinstance(source, list | tuple):
        names = getattr(source, "_fields", None)
        return [(f"[{i}]" if names is None else f".{names[i]}", each) for i, each in enumerate(source)]
    return None


def _local_name(source: Any) -> str | None:
    """The local variable that holds a tensor in the user's function: the only name known for code without a file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE) and _TENSORFLOW not in file:
            return next((name for name, value in local_variables(frame).items() if value is source), None)
        frame = frame.f_back
    return None


def _call_at(frame: Frame, functions: Sequence[str]) -> ast.Call | None:
    """The call of one of `functions`, methods or not, that begins in a line."""
    lines: list[str] = []
    for number in range(frame.line, frame.line + _LINES):
        lines.append(linecache.getline(frame.file, number))
        text = "".join(lines)
        tree = parsed(textwrap.dedent(text), textwrap.dedent(text.rstrip().rstrip(":") + ":\n pass"))
        if tree is not None:
            calls = calls_within(tree, *functions)
            # Several calls in one line cannot be distinguished.
            return calls[0] if len(calls) == 1 else None
    return None


def _as_name(node: ast.expr) -> str | None:
    """The source as it is written; `None` if it is too long for a name."""
    name = ast.unparse(node)
    return name if isinstance(node, ast.Name | ast.Attribute) or len(name) <= _LONGEST_NAME else None


def _assigned(op: FlatOp) -> str | None:
    """The name that the user's line gives to the op's result."""
    frames = op.frames
    index = users_frame(frames)
    if index < 0:
        return None
    tree = parsed(linecache.getline(frames[index].file, frames[index].line).strip())
    made = tree.body[0] if tree is not None and tree.body else None
    if not isinstance(made, ast.Assign) or len(made.targets) != 1:
        return None
    return _as_name(made.targets[0]) if isinstance(made.targets[0], ast.Name | ast.Attribute) else None


# Functions that create variables: of TensorFlow, of Keras, of TensorFlow 1.
_VARIABLE_MAKERS = frozenset({"Variable", "add_weight", "get_variable"})


def was_variable(frame: Frame, name: str) -> bool:
    """Whether the user's code binds `name` (of a variable, or of an attribute) to a new variable in one place, and in
    another to something computed from itself, like `x = x - rate * gradient`: a tensor from then on. `x[0]` is a part
    of `x`; where the code shows its own value, those of other parts do not count.

    For plain names only the function or the module of `frame` is searched.
    """
    tree = tree_of("".join(linecache.getlines(frame.file)))
    name, bracket, index = name.partition("[")
    attribute = name.rpartition(".")[2] if "." in name else None
    around = function_at(frame.file, frame.line) or tree
    statements = list(ast.walk(tree) if attribute else own_nodes(around))
    in_classes = {id(each) for node in statements if isinstance(node, ast.ClassDef) for each in node.body}
    made = computed = False
    for statement, bound, value in _bindings(statements):
        target = bound
        if isinstance(bound, ast.Subscript):
            target = bound.value
            if bracket and isinstance(bound.slice, ast.Constant) and f"{ast.unparse(bound.slice)}]" != index:
                continue
        elif bracket:
            value = _value_of_part(value, index)
        is_of_class = id(statement) in in_classes and isinstance(target, ast.Name) and target.id == attribute
        if _is_named(target, name, attribute) or is_of_class:
            has_maker = bool(calls_within(value, *_VARIABLE_MAKERS))
            made = made or has_maker
            # An operator turns a variable into a tensor: `tf.Variable(1.0) - 0.1`.
            of_new = has_maker and isinstance(value, ast.BinOp)
            of_old = not has_maker and any(_is_named(each, name, attribute) for each in ast.walk(value))
            computed = computed or of_new or of_old or isinstance(statement, ast.AugAssign)
    return made and computed


def _value_of_part(value: ast.expr, index: str) -> ast.expr:
    """The value that a list or a dictionary that is written out has at an index; else the whole."""
    if isinstance(value, ast.Dict):
        items = zip(value.keys, value.values, strict=True)
        return next((part for key, part in items if key is not None and f"{ast.unparse(key)}]" == index), value)
    place = int(index[:-1]) if index[:-1].isdecimal() else -1
    return _part_of(value, place, "") or value if isinstance(value, ast.List) and place >= 0 else value


def _bindings(statements: Sequence[ast.AST]) -> Iterator[tuple[ast.AST, ast.expr, ast.expr]]:
    """Each assignment: its target and its value; each target of `w, b = f(w), g(b)` with its own."""
    for node in statements:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            for target in targets_of(node):
                yield from ((node, *pair) for pair in _pairs(target, node.value))


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    listed = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
    each_has_one = len(listed) > 1 and len(values) == len(listed)
    yield from zip(listed, values if each_has_one else [value] * len(listed), strict=True)


def _is_named(node: ast.AST, name: str, attribute: str | None) -> bool:
    kind = ast.Name if attribute is None else ast.Attribute
    return isinstance(node, kind) and name_of(node) == (attribute or name)
