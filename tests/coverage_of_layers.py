"""How much of the code that needs no TensorFlow is run by the tests that need none, for each layer.

    make coverage                      # the tests, then: python -m tests.coverage_of_layers build/coverage/data

Fails if fewer than nine in ten branches of a layer are run. With `--missing`, prints the lines and branches that are
not. Needs the package `coverage`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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

    def __str__(self) -> str:
        lines, branches = 100 * self.lines_run / self.lines, self.share_of_branches
        return f"lines {lines:5.1f} % branches {branches:5.1f} % ({self.branches_run} of {self.branches})"

    @property
    def share_of_branches(self) -> float:
        return 100 * self.branches_run / self.branches


def counted(files: dict[str, Any], layer: str) -> Counted:
    """Of a report of coverage.py in JSON."""
    found = Counted()
    for path, told in files.items():
        if not path.replace("\\", "/").rpartition("tb_gradflow/")[2].startswith(f"{layer}/"):
            continue
        summary = told["summary"]
        found.lines += summary["num_statements"]
        found.lines_run += summary["covered_lines"]
        found.branches += summary["num_branches"]
        found.branches_run += summary["covered_branches"]
        found.missing += [f"{path}:{each}" for each in _missing(told)]
    return found


def _missing(told: dict[str, Any]) -> Iterator[str]:
    """Lines that were not run, and lines that never went on to another one."""
    yield from told["missing_lines"]
    for line, other in told["missing_branches"]:
        if line not in told["missing_lines"]:
            yield f"{line} -> {other if other > 0 else 'its end'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()
    measured = importlib.import_module("coverage").Coverage(data_file=options.data, config_file=False, branch=True)
    measured.load()
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "coverage.json"
        measured.json_report(outfile=str(report))
        files = json.loads(report.read_text(encoding="utf-8"))["files"]
    by_layer = {layer: counted(files, layer) for layer in LAYERS}
    for layer, found in by_layer.items():
        if options.missing:
            sys.stdout.write("".join(f"{each}\n" for each in found.missing))
        sys.stdout.write(f"{layer:10} {found}\n")
    return int(any(found.share_of_branches < LEAST for found in by_layer.values()))


if __name__ == "__main__":
    sys.exit(main())
