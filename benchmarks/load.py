"""Fifty pages use one TensorBoard: whether a request fails, how much memory it takes, and whether other tabs wait.

    python -m benchmarks.load [directory of one recorded run] [--steps 1000] [--clients 50] [--rounds 3]

Without a run, a synthetic one of 1,800 ops is written. Each client requests what a page requests: the list of runs, the
overview, the trace, the report, the statistics of a chunk, a series, the heat map; then random steps. At the same time
the requests of another tab (TensorBoard's own scalars) are timed. Prints the ratio of their median to that before; the
same while as many clients request only scalars, which is the cost of any plugin. Memory is that of TensorBoard and its
loader.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.lengthened import repeated
from benchmarks.reading import family, resident_bytes, wait
from benchmarks.viewer_graphs import transformer, write
from tests.serve.processes import TensorBoard, tensorboard

OTHER_TAB = "data/plugin/scalars/tags"
PROBES = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", help="directory of one recorded run")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loaders", nargs="*", default=["true", "false"], help="values of --load_fast")
    options = parser.parse_args()
    for loader in options.loaders:
        with tempfile.TemporaryDirectory() as logdir:
            if options.run is None:
                write(f"{logdir}/run", transformer(1800), options.steps)
            else:
                repeated(str(Path(options.run) / "gradflow"), f"{logdir}/run", options.steps)
            with tensorboard(f"--logdir={logdir}", f"--load_fast={loader}") as board:
                run = wait(board, options.steps)
                print(f"--load_fast={loader}, {options.steps} steps, {options.clients} clients", flush=True)
                measure(board, run, options.clients, options.rounds)


def measure(board: TensorBoard, run: str, clients: int, rounds: int) -> None:
    alone = statistics.median(seconds(lambda: board.get(OTHER_TAB)) for _ in range(PROBES))
    print(f"  another tab's answer: {alone * 1e3:.1f} ms alone, {memory(board):.0f} MB", flush=True)
    beside = under_load(board, clients, partial(ask_others, board))[0]
    print(f"  while {clients} clients ask for the same: {beside / alone:.1f} times", flush=True)
    for number in range(rounds):
        beside, statuses, spent = under_load(board, clients, partial(visit, board, run))
        wrong = sum(status != 200 for status in statuses)
        print(
            f"  round {number + 1}: {len(statuses)} requests in {spent:.0f} s, {wrong} failed, "
            f"another tab {beside / alone:.1f} times, {memory(board):.0f} MB",
            flush=True,
        )


def under_load(
    board: TensorBoard, clients: int, work: Callable[[random.Random], list[int]]
) -> tuple[float, list[int], float]:
    """The median answer of another tab while all clients work, the statuses that these got, and how long it took."""
    over = threading.Event()
    probes: list[float] = []

    def probe() -> None:
        while not over.is_set():
            probes.append(seconds(lambda: board.get(OTHER_TAB)))
            time.sleep(0.05)

    watcher = threading.Thread(target=probe)
    watcher.start()
    began = time.perf_counter()
    # In a process of their own: what they do with the answers must not keep the one that is timed waiting.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
        statuses = other.submit(crowd, clients, work).result()
    spent = time.perf_counter() - began
    over.set()
    watcher.join()
    return statistics.median(probes), statuses, spent


def crowd(clients: int, work: Callable[[random.Random], list[int]]) -> list[int]:
    with ThreadPoolExecutor(clients) as pool:
        return [status for each in pool.map(work, map(random.Random, range(clients))) for status in each]


def ask_others(board: TensorBoard, chance: random.Random) -> list[int]:
    return [board.get(OTHER_TAB).status for _ in range(100)]


def visit(board: TensorBoard, run: str, chance: random.Random) -> list[int]:
    """What one page asks for, until it has moved to a step at random."""
    statuses = [board.ask("runs").status]
    answer = board.ask("overview", run=run)
    statuses.append(answer.status)
    overview = answer.json
    place = {"run": run, "session": overview["session"]["id"]}
    chunk = chance.choice(overview["chunks"])["id"]
    trace = overview["traces"][-1]
    heat = {"trace": trace, "target": 0, "quantity": "gradient", "columns": 400}
    for route, parameters in (
        ("trace", {**place, "trace": trace}),
        ("report", {"run": run}),
        ("gradients", {**place, "chunk": chunk}),
        ("variables", {**place, "chunk": chunk}),
        ("series", {"run": run, "row": 3}),
        ("heat", {"run": run, **heat}),
        ("standings", {}),
        ("report", {"run": run, "step": chance.choice(overview["steps"])}),
    ):
        statuses.append(board.ask(route, **parameters).status)
    return statuses


def seconds(question: Callable[[], object]) -> float:
    began = time.perf_counter()
    question()
    return time.perf_counter() - began


def memory(board: TensorBoard) -> float:
    while True:
        try:
            return sum(map(resident_bytes, family(board.pid))) / 2**20
        except FileNotFoundError:  # a thread has ended meanwhile
            continue


if __name__ == "__main__":
    main()
