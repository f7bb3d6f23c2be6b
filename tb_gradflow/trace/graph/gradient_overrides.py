"""Blocks of `gradient_override_map` in the user's code, and whether they replace anything."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tb_gradflow.record.python import lines_of
from tb_gradflow.record.schema import Override, Source
from tb_gradflow.trace.graph.flat_ops import FlatOp
from tb_gradflow.trace.source.frames import frames_of
from tb_gradflow.trace.source.statements import tree_of

LineNumber = Callable[[Source], "int | None"]

_NAME = "gradient_override_map"


@dataclass(frozen=True, slots=True)
class _Block:
    """One entry of the map in a `with` statement."""

    file: str
    first: int
    last: int
    type: str
    gradient: str


def overrides_in(
    files: Iterable[str], chosen: Sequence[FlatOp], ops: Sequence[FlatOp], place: LineNumber
) -> tuple[Override, ...]:
    """The overrides in some files whose blocks created some of the `chosen` ops, which matter to a loss; `ops` are all
    ops of the step. `place` numbers a line.
    """
    blocks = [block for file in files for block in _blocks(file)]
    in_force = [block for block in blocks if any(_is_inside(op, block) for op in chosen)]
    return tuple(
        Override(
            block.type,
            block.gradient,
            place(_source(block)),
            any(op.op.type == block.type and _is_inside(op, block) for op in ops),
        )
        for block in in_force
    )


def _is_inside(op: FlatOp, block: _Block) -> bool:
    frames = frames_of(op.op.traceback)
    return any(frame.file == block.file and block.first < frame.line <= block.last for frame in frames)


def _source(block: _Block) -> Source:
    return Source(block.file, block.first, "", linecache.getline(block.file, block.first).strip())


def _blocks(file: str) -> Iterator[_Block]:
    text = "".join(linecache.getlines(file))
    if _NAME not in text:
        return
    for node in ast.walk(tree_of(text)):
        if not isinstance(node, ast.With):
            continue
        for call in (item.context_expr for item in node.items):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == _NAME:
                for each in call.args:
                    yield from _entries(file, node, each)


def _entries(file: str, block: ast.With, given: ast.expr) -> Iterator[_Block]:
    """The entries of a literal map; other maps are unknown."""
    if isinstance(given, ast.Dict):
        for key, value in zip(given.keys, given.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                yield _Block(file, block.lineno, lines_of(block)[-1], str(key.value), str(value.value))
