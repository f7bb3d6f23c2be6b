"""How long a log takes to open, how fast a warm server responds, and how its memory grows with a run.

    tb-gradflow demo resnet50 --no-serve
    python -m benchmarks.reading [logs/demo/resnet50/broken] [--steps 1000] [--repeats 20]

The log is lengthened to that many recorded steps by repeating them. Two processes are started, one for each of
TensorBoard's loaders. `open` is the time from TensorBoard's first response until it has loaded all steps; the first
view is what the page requests until its first picture, one request after the other; the others are medians of warm
responses. Then another run grows to the same length while the page's requests are repeated. Prints the resident memory
of TensorBoard, and of the loader that it started.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.lengthened import records, repeated
from tb_gradflow.store.directory import DirectoryReader, find_runs
from tb_gradflow.store.layout import event_file_path
from tb_gradflow.store.run import StoredRun
from tb_gradflow.store.writer import LogWriter, RecordFile
from tests.serve.processes import TensorBoard, tensorboard

GROWTH = (0.25, 0.5, 0.75, 1.0)
"""Of the length at which memory is read."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", default="logs/demo/resnet50/broken", help="directory of one recorded run")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    [source] = find_runs(options.run).values()
    for loader in ("true", "false"):
        with tempfile.TemporaryDirectory() as logdir:
            repeated(source, f"{logdir}/run", options.steps)
            with tensorboard(f"--logdir={logdir}", f"--load_fast={loader}") as board:
                print(f"--load_fast={loader}, {options.steps} steps")
                answers(board, options.steps, options.repeats)
        with (
            tempfile.TemporaryDirectory() as logdir,
            tensorboard(f"--logdir={logdir}", f"--load_fast={loader}") as board,
        ):
            grow(board, source, f"{logdir}/run", options.steps)


def answers(board: TensorBoard, steps: int, repeats: int) -> None:
    began = time.perf_counter()
    run = wait(board, steps)
    print(f"  open: {(time.perf_counter() - began) * 1e3:.0f} ms")
    asked = Questions(board, run)
    first = milliseconds(asked.first_look)
    print(f"  first look: {first:.0f} ms")
    for name, question in asked.warm.items():
        print(f"  {name}: {statistics.median(milliseconds(question) for _ in range(repeats)):.0f} ms")


class Questions:
    """What the page asks for."""

    def __init__(self, board: TensorBoard, run: str) -> None:
        self._board = board
        self._run = run
        overview = board.ask("overview", run=run).json
        self._session = overview["session"]["id"]
        self._chunks = [chunk["id"] for chunk in overview["chunks"]]
        self._steps = overview["steps"]
        trace = overview["traces"][-1]
        heat = {"trace": trace, "target": 0, "quantity": "gradient", "columns": 400}
        self._trace = trace
        self.warm: dict[str, Callable[[], object]] = {
            "one step's numbers": lambda: self._chunk(len(self._chunks) // 2),
            "one step's report": lambda: board.ask("report", run=run, step=self._steps[len(self._steps) // 2]),
            "one series": lambda: board.ask("series", run=run, row=3),
            "the heat map": lambda: board.ask("heat", run=run, **heat),
        }

    def first_look(self) -> None:
        self._board.ask("overview", run=self._run)
        self._board.ask("trace", run=self._run, session=self._session, trace=self._trace)
        self._board.ask("report", run=self._run)
        self._chunk(-1)

    def _chunk(self, at: int) -> None:
        place = {"run": self._run, "session": self._session, "chunk": self._chunks[at]}
        self._board.ask("gradients", **place)
        self._board.ask("variables", **place)


def grow(board: TensorBoard, source: str, destination: str, steps: int) -> None:
    run = StoredRun(DirectoryReader(source))
    index = run.index()
    kept = list(records(run))
    with LogWriter(index.session, RecordFile(event_file_path(destination))) as writer:
        for trace in index.traces:
            writer.write_trace(run.trace(index.session.id, trace))
        written = 0
        for share in GROWTH:
            for number in range(written, int(steps * share)):
                writer.write_step(dataclasses.replace(kept[number % len(kept)], step=number))
            written = int(steps * share)
            writer.flush()
            name = wait(board, written)
            asked = Questions(board, name)
            asked.first_look()
            for question in asked.warm.values():
                question()
            own = resident_bytes(board.pid) / 2**20
            loader = sum(resident_bytes(pid) for pid in family(board.pid)) / 2**20 - own
            log = Path(destination).rglob("*tfevents*")
            size = sum(path.stat().st_size for path in log) / 2**20
            print(f"  memory after {written} steps, a log of {size:.1f} MB: {own:.0f} MB, its loader {loader:.0f} MB")


def wait(board: TensorBoard, steps: int) -> str:
    """The only run's name, once all its steps are known."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        runs = board.ask("runs").json["runs"]
        if runs and len(board.ask("overview", run=runs[0]["run"]).json["steps"]) >= steps:
            return str(runs[0]["run"])
        time.sleep(0.1)  # Asked more often, the Python loader gets little done.
    raise SystemExit(f"TensorBoard does not know {steps} steps after two minutes")


def milliseconds(question: Callable[[], object]) -> float:
    began = time.perf_counter()
    question()
    return (time.perf_counter() - began) * 1e3


def family(pid: int) -> Iterator[int]:
    """A process and those below it."""
    yield pid
    for thread in os.listdir(f"/proc/{pid}/task"):
        for child in Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii").split():
            yield from family(int(child))


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
