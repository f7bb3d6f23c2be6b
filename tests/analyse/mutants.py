"""Changes `analyse/` in one place at a time, and prints the changes that the pure tests do not notice.

    make coverage                                               # leaves build/coverage/data
    python -m tests.analyse.mutants build/coverage/data --sample 300 --seed 1

A place is changed only if tests run it, and only the tests that run it are run again, at most sixty of them, in a
process forked for each change. Needs the package `coverage`, which must have measured with `tests.analyse.contexts`.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import io
import itertools
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MOST_TESTS = 60
MOST_SECONDS = 60

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


def places(tree: ast.AST) -> list[tuple[int, str]]:
    """Line and name of each change of a module."""
    return [
        (node.lineno, said)
        for node in ast.walk(tree)
        if isinstance(node, (ast.expr, ast.stmt))  # nothing else is changed
        for said, _ in _changes_of(node)
    ]


def changed(source: str, wanted: int) -> ast.Module:
    """The module after one of these changes."""
    tree = ast.parse(source)
    all_of_them = ((node, change) for node in ast.walk(tree) for _, change in _changes_of(node))
    node, change = next(itertools.islice(all_of_them, wanted, None))
    change(node)
    return tree


def _changes_of(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            if type(op) in COMPARED:
                new = COMPARED[type(op)]
                yield f"{type(op).__name__} -> {new.__name__}", lambda n, at=at, new=new: n.ops.__setitem__(at, new())
    elif isinstance(node, ast.BoolOp):
        new_op = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield "and <-> or", lambda n: setattr(n, "op", new_op())
        if len(node.values) > 1:
            yield "without the last of and/or", lambda n: n.values.pop()
    elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED and not _is_of_text(node):
        yield f"{type(node.op).__name__} changed", lambda n: setattr(n, "op", COMPUTED[type(n.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "without not", lambda n: _becomes(n, ast.Call(ast.Name("bool", ast.Load()), [n.operand], []))
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "one more", lambda n: setattr(n, "value", n.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "the other truth", lambda n: setattr(n, "value", not n.value)
    elif isinstance(node, ast.If):
        yield "if not", lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))


def _is_of_text(node: ast.BinOp) -> bool:
    return any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in ast.walk(node))


def _becomes(node: Any, other: ast.AST) -> None:
    node.__class__ = other.__class__
    node.__dict__.update(vars(other))


class _Changed(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        super().__init__(name, path)
        self._tree = tree

    def get_code(self, fullname: str) -> Any:
        return compile(ast.fix_missing_locations(self._tree), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, tree: ast.Module) -> None:
        self._module, self._tree = module, tree

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(name, path) if name == self._module else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Changed(name, spec.origin, self._tree)
        return spec


def is_noticed(path: Path, tree: ast.Module, tests: list[str]) -> bool:
    """Whether any test fails; a change that makes them run forever is noticed, too."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(MOST_SECONDS)
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            sys.meta_path.insert(0, _Finder(module.removesuffix(".__init__"), tree))
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                import pytest

                # Plain: pytest would rewrite the modules of this package, because it is a plugin, from their files.
                options = ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:gradflow"]
                status = int(pytest.main([*options, *tests]))
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] != 0


def tests_of(contexts: list[str]) -> list[str]:
    """The tests of the contexts, in which coverage also files what was run outside of tests."""
    return sorted({context for context in contexts if "::" in context})


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under", default="tb_gradflow/analyse")
    options = parser.parse_args()
    for name in ("hypothesis", "numpy", "pytest", "tensorboard.summary.writer.record_writer", "werkzeug"):  # once
        importlib.import_module(name)
    known = importlib.import_module("coverage").CoverageData(options.data)
    known.read()
    chance = random.Random(options.seed)
    listed = []
    for path in sorted((ROOT / options.under).rglob("*.py")):
        contexts = known.contexts_by_lineno(str(path))
        found = enumerate(places(ast.parse(path.read_text(encoding="utf-8"))))
        listed += [
            (path, at, f"{line}: {said}", tests)
            for at, (line, said) in found
            if (tests := tests_of(contexts.get(line, [])))
        ]
    chosen = chance.sample(listed, min(options.sample, len(listed)))
    noticed, began = 0, time.monotonic()
    for number, (path, at, said, tests) in enumerate(chosen, 1):
        tree = changed(path.read_text(encoding="utf-8"), at)
        if is_noticed(path, tree, chance.sample(tests, min(MOST_TESTS, len(tests)))):
            noticed += 1
        else:
            say(f"not noticed: {path.relative_to(ROOT)}:{said}")
        if number % 20 == 0:
            say(f"{noticed} of {number} noticed, {time.monotonic() - began:.0f} s")
    say(f"{noticed} of {len(chosen)} changes noticed; {len(listed)} could be made where tests run")


if __name__ == "__main__":
    main()
