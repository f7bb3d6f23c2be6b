"""Changes `analyse/` in one place at a time, and prints the changes that the pure tests do not notice.

    make coverage                                               # leaves build/coverage/data
    python -m tests.analyse.mutants build/coverage/data --sample 300 --seed 1
    python -m tests.analyse.mutants build/coverage/data --only tb_gradflow/analyse/graph/sinks.py:27

A place is changed only if tests run it, and only the tests that run it are run again, in a process forked for each
change: at most `--tests` of them. A test that also fails without the change notices nothing. Needs the
package `coverage`, which must have measured with `tests.analyse.contexts`.
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
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MOST_TESTS = 60
MOST_SECONDS = 60  # of processor time

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
    """Line and name of each change of a module, and where on the line."""
    return [
        (node.lineno, f"{said} in `{_short(node)}`")
        for node in ast.walk(tree)
        if isinstance(node, (ast.expr, ast.stmt))  # nothing else is changed
        for said, _ in _changes_of(node)
    ]


def _short(node: ast.expr | ast.stmt) -> str:
    said = ast.unparse(node.test if isinstance(node, ast.If) else node)
    return f"{said}, column {node.col_offset}" if isinstance(node, ast.Constant) else said


def changed(source: str, wanted: int) -> ast.Module:
    """The module after one of these changes."""
    tree = ast.parse(source)
    all_of_them = ((node, change) for node in ast.walk(tree) for _, change in _changes_of(node))
    node, change = next(itertools.islice(all_of_them, wanted, None))
    change(node)
    compile(ast.fix_missing_locations(tree), "changed", "exec")  # or else every test would seem to notice it
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
        yield "without the last of and/or", _without_last
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


def _without_last(node: ast.BoolOp) -> None:
    node.values.pop()
    if len(node.values) == 1:  # which Python does not compile
        _becomes(node, node.values[0])


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


class _Failures:
    """A plugin of pytest: the tests that failed."""

    def __init__(self) -> None:
        self.tests: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.tests.append(report.nodeid)


@dataclass(frozen=True)
class Outcome:
    """Of some tests: the first that failed, if any did, and whether they took too long."""

    passed: bool
    failed: tuple[str, ...] = ()
    endless: bool = False


def outcome_of(tests: list[str], path: Path | None = None, tree: ast.Module | None = None) -> Outcome:
    """Of the tests with a module changed, in a process forked for them."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            # Processor time, which other processes of the machine do not prolong; the alarm is for those that wait.
            signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
            signal.alarm(10 * MOST_SECONDS)
            if path is not None and tree is not None:
                module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                sys.meta_path.insert(0, _Finder(module.removesuffix(".__init__"), tree))
            failures = _Failures()
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                import pytest

                # Plain: pytest would rewrite the modules of this package, because it is a plugin, from their files.
                options = ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:gradflow"]
                status = int(pytest.main([*options, *tests], plugins=[failures]))
            os.write(writing, "\n".join(failures.tests).encode())
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as names:
        failed = tuple(names.read().split("\n"))
    status = os.waitpid(child, 0)[1]
    return Outcome(status == 0, tuple(filter(None, failed)), endless=os.WIFSIGNALED(status))


class Judge:
    """Decides whether tests notice a change, and remembers which of them fail without one."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Outcome] = {}

    def __call__(self, path: Path, tree: ast.Module, tests: list[str]) -> str:
        """`noticed`, `endless`, `not noticed`, or `undecided` where the tests fail or take too long without it."""
        while tests:
            found = outcome_of(tests, path, tree)
            if found.passed:
                return "not noticed"
            if self._of_unchanged(found.failed or tuple(tests)).passed:
                return "endless" if found.endless else "noticed"
            if not found.failed:
                break
            tests = [each for each in tests if each not in found.failed]
        return "undecided"

    def _of_unchanged(self, tests: tuple[str, ...]) -> Outcome:
        if tests not in self._known:
            self._known[tests] = outcome_of(list(tests))
        return self._known[tests]


def tests_of(contexts: list[str]) -> list[str]:
    """The tests of the contexts, in which coverage also files what was run outside of tests."""
    return sorted({context for context in contexts if "::" in context})


def _no_shrinking() -> None:
    """A failing example need not be small here."""
    hypothesis: Any = importlib.import_module("hypothesis")
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", phases=phases, database=None)
    hypothesis.settings.load_profile("mutants")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--tests", type=int, default=MOST_TESTS, help="at most, for each change")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under", nargs="+", default=["tb_gradflow/analyse"], metavar="FOLDER")
    parser.add_argument(
        "--only", nargs="+", metavar="FILE:LINE", help="all changes of these lines, and all their tests"
    )
    options = parser.parse_args()
    for name in ("hypothesis", "numpy", "pytest", "tensorboard.summary.writer.record_writer", "werkzeug"):  # once
        importlib.import_module(name)
    _no_shrinking()
    known = importlib.import_module("coverage").CoverageData(options.data)
    known.read()
    chance = random.Random(options.seed)
    only = options.only or []
    paths = {path for under in options.under for path in (ROOT / under).rglob("*.py")}
    listed = []
    sources = {}  # read once: somebody may write into a file meanwhile
    for path in sorted({ROOT / each.rpartition(":")[0] for each in only} or paths):
        contexts = known.contexts_by_lineno(str(path))
        sources[path] = path.read_text(encoding="utf-8")
        found = enumerate(places(ast.parse(sources[path])))
        listed += [
            (path, at, line, said, tests)
            for at, (line, said) in found
            if (not only or f"{path.relative_to(ROOT)}:{line}" in only) and (tests := tests_of(contexts.get(line, [])))
        ]
    chosen = listed if only else chance.sample(listed, min(options.sample, len(listed)))
    judge, counts, began = Judge(), Counter[str](), time.monotonic()
    for number, (path, at, line, said, tests) in enumerate(chosen, 1):
        tree = changed(sources[path], at)
        used = chance.sample(tests, min(options.tests, len(tests)))
        result = judge(path, tree, used)
        counts[result] += 1
        if result != "noticed" or only:
            say(f"{result}: {path.relative_to(ROOT)}:{line}: {said} ({len(used)} of {len(tests)} tests)")
        if number % 20 == 0:
            say(f"{number} changes, {dict(counts)}, {time.monotonic() - began:.0f} s")
    say(f"{dict(counts)} of {len(chosen)} changes; {len(listed)} could be made where tests run")


if __name__ == "__main__":
    main()
