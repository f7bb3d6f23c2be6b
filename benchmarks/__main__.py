"""Runs every measurement of `docs/benchmarks.md`, one after the other.

    python -m benchmarks [recorders whole start_up memory reading page] [--quick]

Each part prints its own table; the docstring of its module says what it measures, and how. `--quick` runs each part on
small models with few repeats, to check that it works: its numbers mean nothing. Run nothing else on the machine at the
same time. All parts together take about two hours on two cores.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version

_LOG = "resnet50/broken"

PARTS: dict[str, tuple[list[str], list[str]]] = {
    "recorders": (
        ["-m", "benchmarks.recorders", "mlp", "cnn", "resnet50", "lstm", "transformer"],
        ["-m", "benchmarks.recorders", "mlp", "--steps", "4"],
    ),
    "whole": (
        ["-m", "benchmarks.whole", "mlp", "lstm", "transformer", "--pairs", "40"],
        ["-m", "benchmarks.whole", "mlp", "--pairs", "4"],
    ),
    "start_up": (
        ["-m", "benchmarks.start_up", "mlp", "cnn", "transformer", "resnet50", "loop", "--pairs", "5"],
        ["-m", "benchmarks.start_up", "mlp", "--pairs", "1"],
    ),
    "memory": (
        ["-m", "benchmarks.memory", "mlp", "cnn", "resnet50", "transformer"],
        ["-m", "benchmarks.memory", "mlp", "--steps", "3"],
    ),
    "reading": (
        ["-m", "benchmarks.reading", "{logs}/" + _LOG],
        ["-m", "benchmarks.reading", "{logs}/" + _LOG, "--steps", "40", "--repeats", "3"],
    ),
    "page": (
        ["benchmarks/viewer.py", "{logs}/" + _LOG],
        ["benchmarks/viewer.py", "--repeats", "1", "--switches", "2"],
    ),
}
"""Of each part: what is run, and what is run with `--quick`. `{logs}` is where the demonstration was recorded."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="only check that each part works")
    options = parser.parse_args()
    if unknown := [name for name in options.parts if name not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}: there are {', '.join(PARTS)}")
    packages = ("tensorflow-cpu", "keras", "tensorboard", "numpy")
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in packages),
        flush=True,
    )
    failed = []
    with tempfile.TemporaryDirectory() as logs:
        for name in options.parts:
            command = [each.format(logs=logs) for each in PARTS[name][options.quick]]
            if any(each.startswith(logs) for each in command):
                _record(logs)
            load = os.getloadavg()[0]
            print(f"\n## {name}: python {' '.join(command)}    (load before: {load:.1f})\n", flush=True)
            began = time.monotonic()
            if subprocess.run([sys.executable, *command], stderr=subprocess.DEVNULL, check=False).returncode:
                failed.append(name)
            print(f"\n{time.monotonic() - began:.0f} s", flush=True)
    if failed:
        raise SystemExit(f"ended with an error: {', '.join(failed)}; run it by itself to see why")


def _record(logs: str) -> None:
    """The demonstration that logs are read of."""
    if not os.path.exists(f"{logs}/{_LOG}"):
        demo = ["-m", "tb_gradflow.cli.main", "demo", "resnet50", "--no-serve", "--logdir", logs]
        subprocess.run([sys.executable, *demo], check=True, capture_output=True)


if __name__ == "__main__":
    main()
