"""How much of the code that needs no TensorFlow is run by the tests that need none, for each layer.

    make coverage                                   # the tests, then: python -m tests.coverage_of_layers build/coverage/data

Fails if fewer than nine in ten branches of a layer are run. With `--missing`, prints the branches that are not.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1] / "tb_gradflow"
LAYERS = ("record", "store", "analyse", "gradcheck", "serve")
LEAST = 90.0


@dataclass
class Counted:
    """How many lines and branches of a layer there are, and how many of them were run."""

    lines: int = 0
    lines_run: int = 0
    branches: int = 0
    branches_run: int = 0
    missing: list[str] = field(default_factory=list)

    @property
    def share_of_lines(self) -> float:
        return 100 * self.lines_run / self.lines

    @property
    def share_of_branches(self) -> float:
        return 100 * self.branches_run / self.branches


def counted(measured: Any, layer: str) -> Counted:
    found = Counted()
    for path in sorted((PACKAGE / layer).rglob("*.py")):
        # The only way to a file's branches from Python; reports in JSON are made of the same.
        analysis = measured._analyze(str(path))
        numbers = analysis.numbers
        found.lines += numbers.n_statements
        found.lines_run += numbers.n_executed
        found.branches += numbers.n_branches
        found.branches_run += numbers.n_executed_branches
        found.missing += [f"{path.relative_to(PACKAGE.parent)}:{each}" for each in _missing(analysis)]
    return found


def _missing(analysis: Any) -> Iterator[str]:
    """Line, or line and where it did not go on."""
    yield from (str(line) for line in sorted(analysis.missing))
    for line, others in sorted(analysis.missing_branch_arcs().items()):
        if line not in analysis.missing:
            yield from (f"{line} -> {other if other > 0 else 'end'}" for other in others)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()
    measured = importlib.import_module("coverage").Coverage(data_file=options.data, branch=True)
    measured.load()
    by_layer = {layer: counted(measured, layer) for layer in LAYERS}
    for layer, found in by_layer.items():
        if options.missing:
            sys.stdout.write("".join(f"{each}\n" for each in found.missing))
        sys.stdout.write(f"{layer:10} lines {found.share_of_lines:5.1f} % branches {found.share_of_branches:5.1f} %\n")
    return int(any(found.share_of_branches < LEAST for found in by_layer.values()))


if __name__ == "__main__":
    sys.exit(main())
