"""Kills trainings with SIGKILL at random moments, and checks that no flushed step is lost.

    python -m tests.trace.kills 200 [--seed 0] [--keep DIRECTORY]

A process that has imported TensorFlow, and run nothing, forks each training. In one log directory four of them are
killed one after the other, and the fifth ends by itself. After each, its files are read by `open_log` and by
TensorBoard's Python loader, the files of the runs before it must be unchanged, and the whole directory must open. At
the end TensorBoard's Rust loader reads all directories.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

RUNS_IN_A_DIRECTORY = 5
STEPS_OF_A_WHOLE_RUN = 40
MOST_SECONDS = 120.0
MOST_SECONDS_OF_STEPS = 10.0


@dataclass
class Reports:
    """What a training has reported through its pipe.

    Attributes:
        flushed: The steps of each session that must be in the log.
        thinning: The session that is being reduced to every second step; empty if none is.
        ended: Whether it has ended by itself.
    """

    flushed: dict[str, set[int]] = field(default_factory=dict)
    thinning: str = ""
    ended: bool = False

    def take(self, line: str) -> None:
        kind, session, *steps = json.loads(line)
        if kind == "flushed":
            self.flushed.setdefault(session, set()).update(steps)
        elif kind == "thinning":
            self.thinning = session
        elif kind == "thinned":
            self.flushed.pop(self.thinning)
            self.thinning = ""
        else:
            self.ended = True


# In the training's process.


def train(log_dir: str, kind: str, pipe: int, chance: random.Random, steps: int | None) -> None:
    """Trains until it is killed, or for so many steps."""
    import keras
    import numpy as np
    import tensorflow as tf

    import tb_gradflow
    from tb_gradflow.store import writer
    from tb_gradflow.trace.log.recorder import Recorder

    def say(*line: Any) -> None:
        os.write(pipe, (json.dumps(line) + "\n").encode())

    # Such small numbers that chunks are written, and logs are reduced, as often as in a training of days.
    writer.CHUNK_STEPS = chance.choice((1, 3, 32))
    (Recorder.__init__.__kwdefaults__ or {})["cap_bytes"] = chance.choice((40_000, 200_000, 2**28))
    _report(writer.LogWriter, Recorder, say)

    random_numbers = np.random.default_rng(3)
    x = random_numbers.normal(size=(64, 4)).astype("float32")
    y = random_numbers.normal(size=(64, 1)).astype("float32")
    keras.utils.set_random_seed(7)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
    options: Any = {"update_freq": chance.choice((1, 2)), "terms": kind == "terms", "examples": kind == "terms"}
    if kind == "watch":
        optimizer = keras.optimizers.Adam()

        @tb_gradflow.watch(log_dir, **options)
        def step(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        for number in itertools.count() if steps is None else range(steps):
            rows = slice(8 * (number % 8), 8 * (number % 8) + 8)
            step(tf.constant(x[rows]), tf.constant(y[rows]))
        step.flush()
    else:
        if kind == "terms":
            model.layers[0].kernel_regularizer = keras.regularizers.L2(0.01)
        model.compile("adam", "mse")
        epochs = 10**6 if steps is None else steps // 8
        callback = tb_gradflow.GradFlowCallback(log_dir, **options)
        model.fit(x, y, batch_size=8, epochs=epochs, verbose=0, callbacks=[callback])
    say("ended", "")


def _report(writer: Any, recorder: Any, say: Callable[..., None]) -> None:
    """Lets the recorder report what it has flushed, after it has returned from that."""
    chunk, thin = writer._write_chunk, recorder._thin
    thinned: list[tuple[str, list[int]]] | None = None

    def write_chunk(self: Any) -> None:
        steps = [each.step for each in self._buffer]
        chunk(self)
        if steps and thinned is None:
            say("flushed", self._session.id, *steps)
        elif steps and thinned is not None:
            thinned.append((self._session.id, steps))

    def reduce(self: Any, full: Any) -> None:
        nonlocal thinned
        chunk(full)
        say("flushed", full._session.id)
        say("thinning", full._session.id)
        thinned = []
        thin(self, full)
        written, thinned = thinned, None
        say("thinned", "")
        for session, steps in written:
            say("flushed", session, *steps)

    writer._write_chunk, recorder._thin = write_chunk, reduce


# In the process that kills.


def start(log_dir: str, kind: str, chance: random.Random, steps: int | None) -> tuple[int, int]:
    """The process and the reading end of its pipe."""
    reading, writing = os.pipe()
    seed = chance.random()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    status = 1
    try:
        os.close(reading)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        train(log_dir, kind, writing, random.Random(seed), steps)
        status = 0
    finally:
        os._exit(status)


def followed(process: int, pipe: int, chance: random.Random, is_killed: bool) -> Reports:
    """What the training reports until it is killed: at a random time after its beginning, a random time after so many
    flushed steps, or while it reduces its log."""
    reports, rest = Reports(), b""
    early, reducing = chance.random() < 0.15, chance.random() < 0.3
    wanted = int(10 ** chance.uniform(0.0, 3.3))
    kill_at = time.monotonic() + (chance.uniform(0.0, 6.0) if early else MOST_SECONDS)
    has_flushed, waits, killed = False, True, False
    while True:
        left = None if killed or not is_killed else max(0.0, kill_at - time.monotonic())
        if left == 0.0:
            os.kill(process, signal.SIGKILL)
            killed = True
            left = None
        ready, _, _ = select.select([pipe], [], [], left)
        if not ready:
            continue
        data = os.read(pipe, 65536)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            reports.take(line.decode())
        count = sum(map(len, reports.flushed.values()))
        if count and not has_flushed:
            has_flushed = True
            kill_at = min(kill_at, time.monotonic() + MOST_SECONDS_OF_STEPS)
        if waits and (count >= wanted or (reducing and reports.thinning)):
            waits = False
            kill_at = min(kill_at, time.monotonic() + chance.uniform(0.0, 0.03))
    os.close(pipe)
    _, status = os.waitpid(process, 0)
    if not is_killed and (status or not reports.ended):
        raise RuntimeError(f"a training that was not killed ended with {status}")
    if is_killed and not killed:
        raise RuntimeError(f"a training ended with {status} before it was killed")
    return reports


def by_directory(log_dir: Path) -> Any:
    """The run as `open_log` reads it."""
    from tb_gradflow.store.directory import DirectoryReader
    from tb_gradflow.store.run import StoredRun

    return StoredRun(DirectoryReader(str(log_dir / "gradflow")))


def by_tensorboard(log_dir: Path) -> Any:
    """The run as the plugin reads it."""
    from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
    from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
    from tensorboard.context import RequestContext

    from tb_gradflow.store.provider import ProviderReader, list_runs
    from tb_gradflow.store.run import StoredRun

    multiplexer = EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(log_dir))
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, str(log_dir))
    [name] = list_runs(provider, RequestContext(), "")
    return StoredRun(ProviderReader(provider, RequestContext(), "", name))


LOADERS = (by_directory, by_tensorboard)


def lost(log_dir: Path, reports: Reports) -> Iterator[str]:
    """What one killed run has flushed and its files do not have."""
    import tb_gradflow

    if not any(reports.flushed.values()):
        return
    for loader in LOADERS:
        try:
            index = loader(log_dir).index()
            steps, session = set(index.steps), index.session.id
        except Exception as error:
            yield f"{loader.__name__}: {error!r}"
            continue
        if reports.thinning and session != reports.thinning:
            # Killed between the end of the reduction and the report of it.
            before = reports.flushed[reports.thinning]
            if not steps <= before or len(steps) < len(before) // 2:
                yield f"{loader.__name__}: {len(steps)} of {len(before)} steps, in a log that was being reduced"
        elif session not in reports.flushed:
            yield f"{loader.__name__}: session {session}, not one of {list(reports.flushed)}"
        elif missing := reports.flushed[session] - steps:
            yield f"{loader.__name__}: {sorted(missing)[:9]} of {len(steps)} steps"
    try:
        log = tb_gradflow.open_log(log_dir)
        for step in {log.steps[0], log.steps[-1]}:
            log.report(step)
    except Exception as error:
        yield f"report: {error!r}"


def contents(log_dir: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (log_dir / "gradflow").glob("*")}


def own_files(log_dir: Path, before: dict[str, bytes], to: Path) -> None:
    (to / "gradflow").mkdir(parents=True)
    for name, content in contents(log_dir).items():
        if name not in before:
            (to / "gradflow" / name).write_bytes(content)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", help="where the logs are left")
    given = parser.parse_args()
    # Imported here, so that each training has them when it begins; nothing of TensorFlow's is run before the fork.
    for name in ("keras", "tensorflow"):
        importlib.import_module(name)

    import tb_gradflow

    _ = tb_gradflow.GradFlowCallback, tb_gradflow.watch
    chance = random.Random(given.seed)
    root = Path(given.keep or tempfile.mkdtemp())
    began = time.monotonic()
    counts: Counter[str] = Counter()
    problems: list[str] = []
    last = {}
    for number in range(given.kills + given.kills // (RUNS_IN_A_DIRECTORY - 1)):
        log_dir = root / f"{number // RUNS_IN_A_DIRECTORY:03d}"
        is_killed = number % RUNS_IN_A_DIRECTORY != RUNS_IN_A_DIRECTORY - 1
        kind = chance.choice(("fit", "watch", "terms"))
        before = contents(log_dir)
        process, pipe = start(str(log_dir), kind, chance, None if is_killed else STEPS_OF_A_WHOLE_RUN)
        reports = followed(process, pipe, chance, is_killed)
        counts["killed" if is_killed else "not killed"] += 1
        counts["killed before the first flush"] += is_killed and not reports.flushed
        counts["killed while the log was reduced"] += is_killed and bool(reports.thinning)
        counts["flushed steps"] += sum(map(len, reports.flushed.values()))
        found = []
        if any(before.get(name) != content for name, content in contents(log_dir).items() if name in before):
            found.append("a file of an earlier run has changed")
        if set(before) - set(contents(log_dir)):
            found.append("a file of an earlier run is gone")
        with tempfile.TemporaryDirectory() as alone:
            own_files(log_dir, before, Path(alone))
            counts["ending in half a record"] += is_killed and _is_cut(Path(alone))
            found += lost(Path(alone), reports)
        if reports.flushed:
            # The newest recording is the log, whatever the killed ones before it have left.
            found += [f"the whole directory: {each}" for each in lost(log_dir, reports)]
            last[log_dir.name] = reports
        problems += [f"{number} ({log_dir.name}, {kind}): {each}" for each in found]
        if found:
            _say("\n".join(problems[-len(found) :]))
        if number % 10 == 9:
            _say(f"{dict(counts)}, {len(problems)} problems")
    problems += by_rust(root, last)
    seconds = time.monotonic() - began
    _say("\n".join([*problems, f"{dict(counts)}, {len(problems)} problems, {seconds:.0f} s"]))
    if not given.keep:
        shutil.rmtree(root)
    return 1 if problems else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _is_cut(log_dir: Path) -> bool:
    from tb_gradflow.store.event_file import records

    for path in (log_dir / "gradflow").glob("*"):
        with path.open("rb") as file:
            ends = [place.end for place in records(file, str(path), 0)]
        if path.stat().st_size != (ends[-1] if ends else 0):
            return True
    return False


def by_rust(root: Path, last: dict[str, Reports]) -> Iterator[str]:
    """The same of the newest recording of each directory, by TensorBoard's Rust loader."""
    from tests.serve.processes import tensorboard

    with tensorboard(f"--logdir={root}", "--load_fast=true") as board:
        board.wait_for_runs(len(last), seconds=300)
        for name, reports in last.items():
            whole = max((steps for steps in reports.flushed.values()), key=len)
            with contextlib.suppress(AssertionError):
                board.wait_for_steps(f"{name}/gradflow", len(whole) // (2 if reports.thinning else 1), seconds=10)
            overview = board.ask("overview", run=f"{name}/gradflow").json
            steps, session = set(overview.get("steps", ())), overview.get("session", {}).get("id")
            if missing := reports.flushed.get(session, set()) - steps:
                yield f"{name}, by the Rust loader: {sorted(missing)[:9]} of {len(steps)} steps"
            elif session not in reports.flushed and not reports.thinning:
                yield f"{name}, by the Rust loader: session {session}: {overview.get('error')}"


if __name__ == "__main__":
    sys.exit(main())
