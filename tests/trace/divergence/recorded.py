"""Pairs of recorded runs, and whether a difference was found where it begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import tb_gradflow
from tb_gradflow.api import diverge
from tb_gradflow.serve.reports.divergence import Divergence
from tests.trace.divergence.injections import Injection
from tests.trace.divergence.programs import Change


class Runs:
    """Those below a directory; each program is trained once with each change."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: list[tuple[object, Change, Path]] = []

    def of(self, program: Callable[[Path, Change], None], a: Change, b: Change) -> Divergence:
        """What is found in two runs of a program; twice the same are two trainings."""
        return diverge(*map(tb_gradflow.open_log, (self.directory(program, a), self._trained(program, b))))

    def directory(self, program: Callable[[Path, Change], None], change: Change) -> Path:
        """The log of a training with this change."""
        for known, other, directory in self._known:
            if known is program and other is change:
                return directory
        return self._trained(program, change)

    def _trained(self, program: Callable[[Path, Change], None], change: Change) -> Path:
        directory = self._root / str(len(self._known))
        program(directory, change)
        self._known.append((program, change, directory))
        return directory


def verdict(injection: Injection, found: Divergence) -> str:
    """What is wrong with what was found; empty if nothing is."""
    told = found.to_dict()
    if not told["differs"]:
        return "not found"
    if (told["step"], told["direction"]) != (injection.step, injection.direction):
        return f"begins in step {injection.step}, {injection.direction}"
    names = [told["op"][run]["name"] for run in "ab" if told["op"][run] is not None]
    if told["basis"] in ("batch", "weights", "optimizer", "assigned"):
        names = [told["value"]["name"]]
    if not any(part in name for part in injection.at for name in names):
        return f"begins at {' or '.join(injection.at)}, not at {' or '.join(names)}"
    return ""
