"""The name of a loss: the expression that the user's line passes to `tape.gradient`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tb_gradflow.trace.source.frames import Frame
from tb_gradflow.trace.source.user_line import origin_of

# Methods of a tape, whose first argument is differentiated.
_METHODS = ("gradient", "jacobian", "batch_jacobian")


def target_names(calls: Sequence[Sequence[Frame]]) -> Iterator[str]:
    """The expression that the user's line differentiates: `d_loss` in `tape.gradient(d_loss, …)`; `loss` in Keras's own
    step.

    Several requests on one line, `a.gradient(x, …), b.gradient(y, …)`, run from left to right.
    """
    asked: dict[tuple[str, int], int] = {}
    for frames in calls:
        source = origin_of(frames, "").source
        if source is None or not any(f".{method}(" in source.code for method in _METHODS):
            yield "loss"
            continue
        code = source.code
        found = _differentiated(code[: code.rindex(")") + 1] if ")" in code else code)
        place = asked.get((source.file, source.line), 0)
        asked[source.file, source.line] = place + 1
        yield found[place % len(found)] if found else "loss"


def _differentiated(code: str) -> Sequence[str]:
    """The first arguments of the calls of `_METHODS` in a line of code, if the line can be parsed: in the order in
    which the calls run, inner ones first.
    """
    for attempt in (code, code + ")", code.rstrip(":") + ":\n    pass"):
        try:
            tree = ast.parse(attempt)
        except SyntaxError:
            continue
        calls = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS
        ]
        calls.sort(key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
        given = [[*node.args, *(word.value for word in node.keywords if word.arg == "target")] for node in calls]
        return [ast.unparse(each[0]) if each else "loss" for each in given]
    return []
