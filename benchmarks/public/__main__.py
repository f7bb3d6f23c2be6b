"""Programs of a public benchmark under `tb-gradflow run`: what is said about each, against what is wrong with it.

    python -m benchmarks.public NAME PATH [PROGRAM ...] [--jobs 2] [--limit 60] [--out DIR]

NAME is one of the benchmarks below, PATH a checkout of it. Each program runs in a process of its own: those for Keras
by `benchmarks/public/loader.py`, with today's Keras, and where that refuses the program, with Keras 2; a training ends
after 200 batches or 12 seconds. Those of GRIST run by `benchmarks/public/loader_v1.py`. What was recorded until the
limit counts. `healthy` is a folder of programs about which nothing should be said. The packages that the programs
import (scikit-learn, pandas, scipy) must be installed.

    deepmufl-ase-2023   https://github.com/ali-ghanbari/deepmufl-ase-2023
    grist               https://github.com/Jacob-yen/GRIST
    how-real            https://github.com/dlfaults/HowRealAreThey
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.public import deepmufl, grist, how_real
from benchmarks.public.truth import grade_by_kinds, kinds_of, truths_of

ROOT = Path(__file__).parents[2]

Report = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A set of programs.

    Attributes:
        programs: Name and file of each, given the checkout.
        loaders: The arguments that run a program, in the order in which they are tried, given the checkout.
        expected: What is wrong with the program of this name.
        grade: Of what is reported about it.
    """

    programs: Callable[[Path], Iterator[tuple[str, Path]]]
    loaders: Callable[[Path], Sequence[Sequence[str]]]
    expected: Callable[[str], str]
    grade: Callable[[str, Iterable[Report]], str]


def _healthy(folder: Path) -> Iterator[tuple[str, Path]]:
    return ((path.stem, path) for path in sorted(folder.glob("*.py")))


def _keras(_: Path) -> Sequence[Sequence[str]]:
    return [["loader.py", "--keras", version] for version in ("3", "2")]


def _with_kinds(programs: Callable[[Path], Iterator[tuple[str, Path]]], text: str) -> Benchmark:
    truths = truths_of(text)
    nothing: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    return Benchmark(
        programs,
        _keras,
        lambda name: " ".join(sorted(truths.get(name, nothing)[0])),
        lambda name, reports: grade_by_kinds(reports, *truths.get(name, nothing)),
    )


BENCHMARKS = {
    "deepmufl-ase-2023": _with_kinds(deepmufl.programs, deepmufl.TRUTHS),
    "grist": Benchmark(
        grist.programs, lambda checkout: [["loader_v1.py", str(checkout.resolve())]], grist.expected, grist.grade
    ),
    "how-real": Benchmark(how_real.programs, _keras, how_real.expected, how_real.grade),
    "healthy": _with_kinds(_healthy, ""),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a program.

    Attributes:
        loader: What it ran with.
        reports: One for each training.
        error: The last line of its standard error, if it ended with an error; or a fault of the recorder.
    """

    name: str
    loader: str
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
    loaders, counts = benchmark.loaders(options.path), Counter[str]()
    print("| program | expected | | | reported |\n|---|---|---|---|---|")
    with _kept(options.out) as out, ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(lambda each: outcome_of(each[0], each[1], loaders, out, options.limit), chosen):
            grade = benchmark.grade(outcome.name, outcome.reports) if outcome.reports else "cannot run"
            counts[grade] += 1
            said = [cause for report in outcome.reports for cause, _ in kinds_of(report)]
            shown = ", ".join(filter(None, (*dict.fromkeys(said), outcome.error[:120])))
            cells = (outcome.name, benchmark.expected(outcome.name), grade, outcome.loader, shown)
            print(f"| {' | '.join(cells)} |", flush=True)
    print("\n" + ", ".join(f"{count} {grade}" for grade, count in counts.most_common()))


@contextlib.contextmanager
def _kept(out: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as scratch:
        yield out or Path(scratch)


def outcome_of(name: str, program: Path, loaders: Sequence[Sequence[str]], out: Path, limit: float) -> Outcome:
    """With the first loader that trains it."""
    outcome = _run(name, program, loaders[0], out, limit)
    for loader in loaders[1:]:
        if outcome.reports or outcome.error == _TOO_SLOW:
            break
        later = _run(name, program, loader, out, limit)
        outcome = later if later.reports else outcome
    (out / name).with_suffix(".json").write_text(json.dumps(outcome.reports, indent=1))
    return outcome


def _run(name: str, program: Path, loader: Sequence[str], out: Path, limit: float) -> Outcome:
    logs = out / name
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "MPLBACKEND": "agg"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), environment.get("PYTHONPATH"))))
    gradflow = [sys.executable, "-m", "tb_gradflow.cli.main"]
    command = [str(Path(__file__).with_name(loader[0])), *loader[1:], str(program.resolve())]
    with (out / name).with_suffix(".txt").open("w+b") as said:
        status = _ended([*gradflow, "run", "--logdir", str(logs), *command], environment, said, limit)
        said.seek(0)
        lines = [each for each in said.read().decode(errors="replace").splitlines() if each.strip()]
    found = subprocess.run(
        [*gradflow, "report", str(logs), "--json"], env=environment, capture_output=True, check=False
    )
    runs = json.loads(found.stdout)["runs"].values() if found.stdout.startswith(b"{") else []
    reports = [each for each in runs if all(of["cause"] != "not_measured" for of in each["findings"])]
    errors = [each for each in lines if "Error" in each.split(":")[0]]
    error = _TOO_SLOW if status is None else errors[-1] if status and errors else ""
    faults = [each for each in lines if "tb_gradflow could not" in each]
    return Outcome(name, loader[-1] if loader[1:-1] else loader[0], reports, next(iter(faults), error))


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
