"""The time until a log directory of hundreds of runs shows its first picture, and the state of all runs.

    tb-gradflow demo step_filter silent_none steep_sigmoid --no-serve
    python benchmarks/many_runs.py [logs/demo] [--runs 200] [--steps 100] [--repeats 5] [--hparams]

The recorded runs are copied until there are enough, each copy as a separate run with that many recorded steps; with
`--hparams` each also has hyperparameters, as `tf.summary` would write them for the HParams tab. Uses a real TensorBoard
and a real Chromium. Prints for each of TensorBoard's loaders, once it has loaded all runs:

runs            the response with the list of runs, the first time
tab             from opening the tab to the first frame with a graph on its canvas; median of fresh windows
first tab       the same for the first window
all runs        from opening the tab of a fresh TensorBoard until the list of all runs has the health of each
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.first_picture import frame_of_tab, measure
from benchmarks.lengthened import records
from tb_gradflow.store.directory import DirectoryReader, find_runs
from tb_gradflow.store.layout import event_file_path
from tb_gradflow.store.run import StoredRun
from tb_gradflow.store.writer import LogWriter, RecordFile
from tests.serve.processes import TensorBoard, tensorboard

HOUR = 3600


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?", default="logs/demo", help="a directory of recorded runs")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--hparams", action="store_true", help="give each run hyperparameters")
    parser.add_argument("--keep", metavar="DIR", help="write the runs there, and keep them")
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        logdir = options.keep or temporary
        write_sweep(options.source, logdir, options.runs, options.steps)
        if options.hparams:
            write_hyperparameters(logdir)
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        for loader in ("true", "false"):
            with tensorboard(f"--logdir={logdir}", f"--load_fast={loader}") as board:
                wait_until_loaded(board, options.runs)
                answered = seconds_for_runs(board)
                first, *tabs = (measure(browser, board)[0] for _ in range(1 + options.repeats))
            with tensorboard(f"--logdir={logdir}", f"--load_fast={loader}") as board:
                wait_until_loaded(board, options.runs)
                known = milliseconds_until_known(browser, board)
            print(
                f"--load_fast={loader:<5}  {options.runs} runs: runs {1000 * answered:.0f} ms, "
                f"tab {statistics.median(tabs):.0f} ms, first tab {first:.0f} ms, "
                f"all runs {known:.0f} ms",
                flush=True,
            )
        browser.close()


def write_sweep(source: str, logdir: str, runs: int, steps: int) -> None:
    """Copies of the recorded runs, each an hour younger than the one before."""
    known = list(find_runs(source).items())
    for number, (name, directory) in zip(range(runs), itertools.cycle(known), strict=False):
        stored = StoredRun(DirectoryReader(directory))
        session = stored.index().session
        later = number * HOUR
        began = dataclasses.replace(session, id=f"{int(session.id) + 1000 * later:013d}")
        path = f"{logdir}/sweep{number:03d}-{Path(name).name}"
        with LogWriter(began, RecordFile(event_file_path(path))) as writer:
            for trace in stored.index().traces:
                writer.write_trace(stored.trace(session.id, trace))
            for at, record in enumerate(itertools.islice(itertools.cycle(records(stored)), steps)):
                writer.write_step(dataclasses.replace(record, step=10 * at, wall_time=record.wall_time + later))


def write_hyperparameters(logdir: str) -> None:
    """A sweep over three of them, in an event file of each run beside ours."""
    for number, directory in enumerate(sorted(Path(logdir).iterdir())):
        rate, units, optimizer = 10.0 ** -(1 + number % 4), 8 << (number // 4) % 4, ("adam", "sgd")[number % 2]
        writer = EventFileWriter(str(directory))
        summary = hparams_pb({"lr": rate, "units": units, "optimizer": optimizer}, trial_id=directory.name)
        writer.add_event(Event(wall_time=time.time(), summary=summary))
        writer.close()


def wait_until_loaded(board: TensorBoard, runs: int) -> None:
    """By TensorBoard's own list: ours is to be asked for the first time later."""
    while len(board.get("data/runs").json) < runs:
        time.sleep(0.2)
    time.sleep(5)  # the last of them is read to its end


def seconds_for_runs(board: TensorBoard) -> float:
    began = time.monotonic()
    board.ask("runs")
    return time.monotonic() - began


def milliseconds_until_known(browser: Browser, board: TensorBoard) -> float:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{board.url}#gradflow&p.gradflow.all=1")
    frame = frame_of_tab(page)
    began = frame.evaluate("performance.timeOrigin")
    frame.get_by_role("table", name="All runs").get_by_role("row").nth(1).wait_for()
    said = frame.locator("[role=status]").filter(has_text="analysed so far")
    while said.count() or not frame.get_by_role("button", name="all").count():
        page.wait_for_timeout(20)
    elapsed = float(frame.evaluate("Date.now()") - began)
    page.close()
    return elapsed


if __name__ == "__main__":
    main()
