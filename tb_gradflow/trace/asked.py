"""Tensors, other than variables, that the user's own code asks a gradient for: which they are, what to call them."""

from __future__ import annotations

import ast
import linecache
import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.differentiable import is_differentiable_dtype
from tb_gradflow.trace.flat_ops import FlatOp, Ref
from tb_gradflow.trace.frames import Frame, frames_of
from tb_gradflow.trace.source import is_users, users_frame

# A call that is longer than this is not read.
_LINES = 12

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_TENSORFLOW = os.sep + "tensorflow" + os.sep


@dataclass(frozen=True, slots=True)
class Asked:
    """A tensor that an op of the step made, or that the step was given, and that a gradient is asked for.

    Attributes:
        tensor: As it was given.
        ref: The flat op that made it, or stands for it.
        name: What the user calls it.
    """

    tensor: Any
    ref: Ref
    name: str


def asked_tensors(
    sources: Sequence[Any], ref_of: Callable[[Any], Ref | None], ops: Sequence[FlatOp], frames: Sequence[Frame]
) -> Iterator[Asked]:
    """Of what one call asks a gradient for, the tensors. `ref_of` answers the op that made one, null where none did.

    A library's own calls ask for tensors that are none of the user's business: recomputing a block, for one.
    """
    caller = _caller(frames)
    if caller is None:
        return
    written = _written(caller, len(sources))
    for place, source in enumerate(sources):
        ref = ref_of(source) if isinstance(source, tf.Tensor) and is_differentiable_dtype(source) else None
        if ref is not None and ops[ref.op].reads is None and not ops[ref.op].backward:
            yield Asked(source, ref, written[place] or _assigned(ops[ref.op]) or ops[ref.op].name.rpartition("/")[2])


def is_answer(gradient: Any, source: Any, *, zeros_for_none: bool) -> bool:
    """Whether a gradient arrived for a tensor: the zeros that the caller wanted in the place of none are no answer."""
    if gradient is None or not zeros_for_none or not isinstance(gradient, tf.Tensor):
        return gradient is not None
    if not tf.is_symbolic_tensor(gradient):
        return True
    if gradient.op.type == "ZerosLike":
        return gradient.op.inputs[0] is not source
    value = tf.get_static_value(gradient)
    return value is None or bool(value.any())


def _caller(frames: Sequence[Frame]) -> Frame | None:
    """The frame that calls `gradient`, if it is the user's."""
    for frame in reversed(frames):
        if is_users(frame.file):
            return frame
        if not frame.file.startswith(_OWN) and _TENSORFLOW not in frame.file:
            return None
    return None


def _written(frame: Frame, count: int) -> list[str | None]:
    """How the call writes each of its sources; null for those that it does not name."""
    unknown: list[str | None] = [None] * count
    call = _call_at(frame)
    if call is None:
        return unknown
    given = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "sources")]
    if not given:
        return unknown
    listed = given[0].elts if isinstance(given[0], ast.List | ast.Tuple) else [given[0]]
    if len(listed) == count:
        return [_name_of(each) for each in listed]
    name = _name_of(given[0])
    return [f"{name}[{place}]" for place in range(count)] if name is not None else unknown


def _call_at(frame: Frame) -> ast.Call | None:
    """The call of a method `gradient` that begins in a line."""
    lines: list[str] = []
    for number in range(frame.line, frame.line + _LINES):
        lines.append(linecache.getline(frame.file, number))
        for text in ("".join(lines), "".join(lines).rstrip().rstrip(":") + ":\n pass"):
            try:
                tree = ast.parse(textwrap.dedent(text))
            except SyntaxError:
                continue
            calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
            return next((call for call in calls if _asks(call)), None)
    return None


def _asks(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "gradient"


def _name_of(node: ast.expr) -> str | None:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else None


def _assigned(op: FlatOp) -> str | None:
    """The name that the user's line gives to what the op makes."""
    known = op.known
    frames = known.frames if known is not None and known.frames is not None else frames_of(op.op.traceback)
    index = users_frame(frames)
    if index < 0:
        return None
    try:
        tree = ast.parse(linecache.getline(frames[index].file, frames[index].line).strip())
    except SyntaxError:
        return None
    made = tree.body[0] if tree.body else None
    return _name_of(made.targets[0]) if isinstance(made, ast.Assign) and len(made.targets) == 1 else None
