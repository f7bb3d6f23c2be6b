"""Puts each injection into each program, and tells how often the monitor sees it, and says what it was.

python -m tests.trace.spikes.contact [PART OF A NAME …]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import keras

from tb_gradflow import GradFlowCallback
from tb_gradflow.analyse.over_time.spikes import SpikeSeen
from tb_gradflow.store.directory import DirectoryReader
from tb_gradflow.store.run import StoredRun
from tests.trace.spikes.injections import AT, INJECTIONS, PROGRAMS, Injection


def spikes_in(directory: Path) -> list[SpikeSeen]:
    """The steps of a log that were not usual."""
    run = StoredRun(DirectoryReader(str(directory / "gradflow")))
    index, found = run.index(), []
    for step in sorted(index.with_values):
        place = index.find(step)
        if place is not None:
            trace = run.trace(index.session.id, place[0].trace)
            spike = run.values(index.session.id, step, trace).spike
            found += [] if spike is None else [SpikeSeen(step, trace, spike)]
    return found


def recorded(program: Any, injection: Injection | None, directory: Path, **options: Any) -> list[SpikeSeen]:
    """Trains it with the recorder."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(7)
    training = program()
    if injection is not None:
        injection.put(training)
    training.fit([GradFlowCallback(directory, update_freq=10**6, try_fixes=False, **options)])
    return spikes_in(directory)


def verdict(injection: Injection, found: list[SpikeSeen]) -> str:
    """Empty if that is right."""
    if not found:
        return "missed"
    first = found[0]
    if first.step not in (AT, AT + 1):
        return f"wrong step {first.step}"
    return "" if first.kind in injection.expected else f"said {first.kind}"


def main() -> None:
    words = sys.argv[1:]
    counts: dict[str, int] = {}
    for injection in INJECTIONS:
        for program in PROGRAMS:
            name = f"{injection.put.__name__}, {program.__name__}"
            if words and not all(word in name for word in words):
                continue
            with tempfile.TemporaryDirectory() as directory:
                found = recorded(program, injection, Path(directory))
            wrong = verdict(injection, found)
            counts[wrong.partition(" ")[0] or "right"] = counts.get(wrong.partition(" ")[0] or "right", 0) + 1
            print(f"{wrong or 'ok'}: {name}: {[(each.step, each.spike.of, each.kind) for each in found]}", flush=True)
            if words or wrong:
                for each in found[:1]:
                    print(f"    {each.spike}", flush=True)
    for program in () if words else PROGRAMS:
        with tempfile.TemporaryDirectory() as directory:
            found = recorded(program, None, Path(directory))
        print(f"{'FALSE ALARM' if found else 'ok'}: nothing, {program.__name__}: {found}", flush=True)
    print(counts)


if __name__ == "__main__":
    main()
