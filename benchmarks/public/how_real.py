"""The programs of BenchDL4Real (HowRealAreThey): faults that could be reproduced, each with a fixed twin.

About a fixed twin nothing should be said. What is said about the program with the fault is listed, and not graded: the
faults are of all kinds, many of them a wrong shape with which nothing trains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

_BUGGY, _FIXED = "buggy", "fixed"

_MAIN = {
    "Defects4ML/006": "autoencoder/AutoencoderRunner.py",
    "Defects4ML/022": "gated_pixelcnn/train_mnist.py",
    "Defects4ML/043": "cifar10/cifar10_train.py",
}
"""What is run of a program with several files."""

_FOLDERS = {
    "BuggyCode": _BUGGY,
    "CorrectCode": _FIXED,
    "buggy": _BUGGY,
    "fixed": _FIXED,
}

_NAMES = {"origin": _BUGGY, "repair": _FIXED, "context": _BUGGY, "ground_truth": _FIXED}


def programs(checkout: Path) -> Iterator[tuple[str, Path]]:
    """Name and file of each program: the name ends with which twin it is."""
    root = checkout / "BenchDL4Real"
    for path in sorted(root.rglob("*.py")):
        part, fault, *rest = path.relative_to(root).parts
        if part == "SFData":
            number, _, twin = path.stem.partition("_")
            yield f"{part}/{number}/{_NAMES[twin]}", path
        elif part == "DeepFD":
            yield f"{part}/{fault}/{_NAMES[path.stem]}", path
        elif rest[0] in _FOLDERS and "/".join(rest[1:]) == _MAIN.get(f"{part}/{fault}", "/".join(rest[1:])):
            yield f"{part}/{fault}/{_FOLDERS[rest[0]]}", path


def expected(name: str) -> str:
    return "nothing" if name.endswith(_FIXED) else ""


def grade(name: str, reports: Iterable[Mapping[str, Any]]) -> str:
    """Of a fixed twin: `right` if nothing is said, else `wrong`. Of the other: whether something is."""
    is_silent = all(report["healthy"] for report in reports)
    if name.endswith(_FIXED):
        return "right" if is_silent else "wrong"
    return "silent" if is_silent else "said"
