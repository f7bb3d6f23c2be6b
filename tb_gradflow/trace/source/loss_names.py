"""The name of a loss: the expression that the user's line passes to `tape.gradient`, or to `minimize`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tb_gradflow.record.python import argument_of, calls_within, parsed
from tb_gradflow.trace.source.frames import Frame
from tb_gradflow.trace.source.user_line import origin_of
from tb_gradflow.trace.tf_internals.tapes import REQUESTS

# The same in a graph of TensorFlow 1.
_GRAPH_METHODS = ("minimize", "compute_gradients", "gradients")

_LOSSES, _SOURCES = ("target", "loss", "ys"), ("var_list", "xs")


def target_names(calls: Sequence[Sequence[Frame]], *, by_tape: bool = True) -> Iterator[str]:
    """The expression that the user's line differentiates: `d_loss` in `tape.gradient(d_loss, …)`; `loss` in Keras's own
    step.

    Several requests on one line, `a.gradient(x, …), b.gradient(y, …)`, run from left to right.
    """
    methods = REQUESTS if by_tape else _GRAPH_METHODS
    asked: dict[tuple[str, int], int] = {}
    for frames in calls:
        source = origin_of(frames, "").source
        if source is None or not any(f".{method}(" in source.code for method in methods):
            yield "loss"
            continue
        code = source.code
        code = code[: code.rindex(")") + 1] if ")" in code else code
        found = [_given(call, 0, _LOSSES) or "loss" for call in _calls_in(code, methods)]
        place = asked.get((source.file, source.line), 0)
        asked[source.file, source.line] = place + 1
        yield found[place % len(found)] if found else "loss"


def requested_in(frames: Sequence[Frame]) -> tuple[str, str]:
    """The expressions for the loss and for the variables in the user's line that requests a gradient in a graph; empty
    where they are not written there.
    """
    source = origin_of(frames, "").source
    calls = _calls_in(source.code, _GRAPH_METHODS) if source is not None else []
    if len(calls) != 1:
        return "", ""
    [call] = calls
    is_function = isinstance(call.func, ast.Attribute) and call.func.attr == "gradients"
    return _given(call, 0, _LOSSES), _given(call, 1 if is_function else -1, _SOURCES)


def _given(call: ast.Call, place: int, keywords: Sequence[str]) -> str:
    """An argument of a call as it is written; empty if it is not given."""
    argument = argument_of(call, place, *keywords)
    return ast.unparse(argument) if argument is not None else ""


def _calls_in(code: str, methods: Sequence[str]) -> list[ast.Call]:
    """The calls of some methods in a line of code, if the line can be parsed: in the order in which they run, inner
    ones first.
    """
    tree = parsed(code, code + ")", code.rstrip(":") + ":\n    pass")
    calls = calls_within(tree, *methods) if tree is not None else []
    of_objects = (call for call in calls if isinstance(call.func, ast.Attribute))
    return sorted(of_objects, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))
