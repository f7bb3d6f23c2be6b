"""The lines that called functions of `keras.ops` while a functional model was built. In the step, Keras calls such a
function as it calls a layer, and no line of the user's code is left.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterable, Iterator

from tb_gradflow.record.python import imports_of
from tb_gradflow.record.schema import Source
from tb_gradflow.trace.source.statements import tree_of, written_at

# A call in these is made in the step, where its line is known.
_OF_A_STEP = frozenset({"call", "__call__", "train_step", "test_step", "compute_loss", "compute_metrics"})


def line_of(api: str, files: Iterable[str]) -> Source | None:
    """The one line of these files that calls `api`, such as `keras.ops.round`, where a model is built; None if there
    is none or more than one."""
    name = api.rpartition(".")[2]
    texts = {file: "".join(linecache.getlines(file)) for file in files}
    # A program may have hundreds of files, and few that call it.
    named = [file for file, text in texts.items() if "ops" in text and name in text and "keras" in text]
    lines = [(file, line) for file in named for line in _calls(texts[file]).get(api, ())]
    if len(lines) != 1:
        return None
    [(file, (line, function))] = lines
    return Source(file, line, function, written_at(file, line))


@functools.lru_cache(maxsize=512)
def _calls(text: str) -> dict[str, list[tuple[int, str]]]:
    """The calls of functions of `keras.ops` outside of a step, by function: the line and the function around it."""
    found: dict[str, list[tuple[int, str]]] = {}
    tree = tree_of(text)
    known = imports_of(tree)
    for node, function in _nodes(tree, "<module>"):
        root, _, rest = ast.unparse(node.func).partition(".")
        name = f"{known.get(root, root)}.{rest}".rstrip(".").replace("tensorflow.keras.", "keras.")
        if name.startswith("keras.ops."):
            found.setdefault(name, []).append((node.lineno, function))
    return found


def _nodes(node: ast.AST, function: str) -> Iterator[tuple[ast.Call, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Lambda) or getattr(child, "name", None) in _OF_A_STEP:
            continue
        if isinstance(child, ast.Call):
            yield child, function
        inside = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
        yield from _nodes(child, inside)
