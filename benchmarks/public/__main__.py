"""Programs of a public benchmark under `tb-gradflow run`: what is said about each, against what is wrong with it.

    python -m benchmarks.public NAME PATH [PROGRAM ...] [--jobs 2] [--limit 60] [--out DIR]

NAME is one of the benchmarks below, PATH a checkout of it, which is only read. Each program runs in a process of its
own, by `benchmarks/public/loader.py`: with today's Keras, and where that refuses the program, with Keras 2; a training
ends after 200 batches or 12 seconds. What was recorded until the limit counts. `healthy` is a folder of programs about
which nothing should be said. The packages that the programs import (scikit-learn, pandas) must be installed.

    deepmufl-ase-2023   https://github.com/ali-ghanbari/deepmufl-ase-2023
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.public import deepmufl
from benchmarks.public.truth import GRADES, grade, kinds_of, truths_of

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Where its programs are, and what is wrong with them."""

    programs: Callable[[Path], Iterator[tuple[str, Path]]]
    truths: str


def _healthy(folder: Path) -> Iterator[tuple[str, Path]]:
    return ((path.stem, path) for path in sorted(folder.glob("*.py")))


BENCHMARKS = {
    "deepmufl-ase-2023": Benchmark(deepmufl.programs, deepmufl.TRUTHS),
    "healthy": Benchmark(_healthy, ""),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a program.

    Attributes:
        keras: The version of Keras that it ran with.
        reports: One for each training.
        error: The last line of its standard error, if it ended with an error.
    """

    name: str
    keras: str
    reports: list[dict[str, Any]]
    error: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("path", type=Path)
    parser.add_argument("programs", nargs="*", help="only these (default: all)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one program (default: 60)")
    parser.add_argument("--out", type=Path, help="where logs and reports are kept")
    options = parser.parse_args()
    benchmark = BENCHMARKS[options.name]
    chosen = [each for each in benchmark.programs(options.path) if not options.programs or each[0] in options.programs]
    truths, counts = truths_of(benchmark.truths), Counter[str]()
    print("| program | expected | | Keras | reported |\n|---|---|---|---|---|")
    with _kept(options.out) as out, ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(lambda each: outcome_of(each[0], each[1], out, options.limit), chosen):
            right, part = truths.get(outcome.name, (frozenset(), frozenset()))
            known = grade(outcome.reports, right, part) if outcome.reports else "cannot run"
            counts[known] += 1
            said = [cause for report in outcome.reports for cause, _ in kinds_of(report)]
            shown = ", ".join(dict.fromkeys(said)) or ("" if outcome.reports else outcome.error[:120])
            print(f"| {outcome.name} | {' '.join(sorted(right))} | {known} | {outcome.keras} | {shown} |", flush=True)
    print("\n" + ", ".join(f"{counts[each]} {each}" for each in GRADES))


@contextlib.contextmanager
def _kept(out: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as scratch:
        yield out or Path(scratch)


def outcome_of(name: str, program: Path, out: Path, limit: float) -> Outcome:
    """With the first version of Keras that trains it."""
    outcome = _run(name, program, out, limit, "3")
    if not outcome.reports and outcome.error != _TOO_SLOW:
        older = _run(name, program, out, limit, "2")
        outcome = older if older.reports else outcome
    (out / f"{name}.json").write_text(json.dumps(outcome.reports, indent=1))
    return outcome


def _run(name: str, program: Path, out: Path, limit: float, keras: str) -> Outcome:
    logs = out / name
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "MPLBACKEND": "agg"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), environment.get("PYTHONPATH"))))
    gradflow = [sys.executable, "-m", "tb_gradflow.cli.main"]
    loader = [str(Path(__file__).with_name("loader.py")), "--keras", keras, str(program.resolve())]
    with (out / f"{name}.txt").open("w+b") as said:
        status = _ended([*gradflow, "run", "--logdir", str(logs), *loader], environment, said, limit)
        said.seek(0)
        lines = [each for each in said.read().decode(errors="replace").splitlines() if each.strip()]
    found = subprocess.run(
        [*gradflow, "report", str(logs), "--json"], env=environment, capture_output=True, check=False
    )
    runs = json.loads(found.stdout)["runs"].values() if found.stdout.startswith(b"{") else []
    reports = [each for each in runs if all(of["cause"] != "not_measured" for of in each["findings"])]
    errors = [each for each in lines if "Error" in each.split(":")[0]]
    error = _TOO_SLOW if status is None else errors[-1] if status and errors else ""
    return Outcome(name, keras, reports, error)


_TOO_SLOW = "too slow"


def _ended(command: Sequence[str], environment: dict[str, str], said: Any, limit: float) -> int | None:
    """Its exit status; `None` if it takes too long. It is interrupted then, so that the log is complete."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(limit)
    os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10.0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return None


if __name__ == "__main__":
    main()
