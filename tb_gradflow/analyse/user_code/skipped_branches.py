"""Branches of the user's code that a step does not run."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tb_gradflow.analyse.user_code.code import Code, program_of
from tb_gradflow.analyse.user_code.definitions import definition_of_layer
from tb_gradflow.record.python import FUNCTIONS, lines_of
from tb_gradflow.record.schema import Trace


def condition_of(trace: Trace, variable: str) -> str:
    """The condition under which alone the class of a layer uses it, as written, if the step runs the method but nothing
    in that branch; empty if there is none. Whether a step trains is no such condition: it should."""
    passages = program_of(trace).passages
    for owner in reversed(variable.split("/")[:-1]):
        layer = definition_of_layer(passages, trace, owner)
        if layer is None or not layer.bound_to.startswith("self."):
            continue
        ran = {each.line for each in trace.sources if each.file == layer.code.passage.file}
        maker = layer.code.scope(layer.call)
        uses = [
            node
            for node in ast.walk(layer.code.parent(maker) or layer.code.tree)
            if isinstance(node, ast.Attribute)
            and layer.code.written(node) == layer.bound_to
            and maker not in layer.code.around(node)
        ]
        conditions = [_condition_around(layer.code, node, ran) for node in uses]
        return conditions[0] if conditions and all(conditions) else ""
    return ""


def _condition_around(code: Code, node: ast.AST, ran: set[int]) -> str:
    """That of the innermost branch around a node without a line that ran, in a method with one."""
    around = list(code.around(node))
    method = next((each for each in around if isinstance(each, FUNCTIONS)), None)
    if method is None or ran.isdisjoint(_lines(code, [method])):
        return ""
    for inner, outer in zip([node, *around], around, strict=False):
        branch = (
            next((part for part in (outer.body, outer.orelse) if inner in part), [])
            if isinstance(outer, ast.If)
            else []
        )
        if isinstance(outer, ast.If) and branch and ran.isdisjoint(_lines(code, branch)):
            return "" if "training" in code.names(outer.test) else code.written(outer.test)
        if outer is method:
            break
    return ""


def _lines(code: Code, nodes: Sequence[ast.AST]) -> set[int]:
    return {line + code.passage.line - 1 for line in lines_of(nodes[0], nodes[-1])}
