"""Whole programs, by themselves and under `tb-gradflow run`: computing time, time and peak memory.

    python -m benchmarks.programs train.py [another.py …] [--pairs 3]

Each is run as it is, in a process of its own and in its own directory; those with and without the recorder alternate.
Prints the median of the plain program and of the pairs' ratios; the peak memory is that of the largest process. Both
must end with the same status and, on standard output, with the same text before the report.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run took, and how it ended.

    Attributes:
        cpu: Seconds of all threads.
        time: Seconds.
        memory: The peak, in GiB.
        status: The exit status.
        said: Its standard output.
    """

    cpu: float
    time: float
    memory: float
    status: int
    said: bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", type=Path)
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    print("| program | plain CPU, s | CPU time | time | plain memory, GiB | memory |")
    print("|---|---|---|---|---|---|")
    for program in options.programs:
        measure(program.resolve(), options.pairs)


def measure(program: Path, pairs: int) -> None:
    costs = [(run(program, recorded=False), run(program, recorded=True)) for _ in range(pairs)]
    for plain, recorded in costs:
        if plain.status != recorded.status or not recorded.said.startswith(plain.said.rstrip()):
            sys.exit(f"{program}: not the same under tb-gradflow run: status {plain.status} and {recorded.status}")
    cpu, memory = (statistics.median(getattr(plain, name) for plain, _ in costs) for name in ("cpu", "memory"))
    ratios = [
        statistics.median(getattr(recorded, name) / getattr(plain, name) for plain, recorded in costs)
        for name in ("cpu", "time", "memory")
    ]
    print(
        f"| {program.parent.name}/{program.name} | {cpu:.1f} | {ratios[0]:.2f} | {ratios[1]:.2f} | {memory:.2f} | "
        f"{ratios[2]:.2f} |",
        flush=True,
    )


def run(program: Path, *, recorded: bool) -> Cost:
    with tempfile.TemporaryDirectory() as logdir, tempfile.TemporaryFile() as said:
        command = ["-m", "tb_gradflow.cli.main", "run", "--logdir", logdir] if recorded else []
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *command, program.name], cwd=program.parent, stdout=said, stderr=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        took = time.perf_counter() - began
        said.seek(0)
        ended = os.waitstatus_to_exitcode(status)
        return Cost(used.ru_utime + used.ru_stime, took, used.ru_maxrss / 2**20, ended, said.read())


if __name__ == "__main__":
    main()
