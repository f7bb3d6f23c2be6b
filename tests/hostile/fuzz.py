"""Reads thousands of mutated logs, each in bounded time and memory, and prints what was wrong.

    python -m tests.hostile.fuzz 20000 [--first 0] [--processes 2]

A fault is any exception but a LogError, more than ten seconds of work, or more than two gigabytes. Each is printed
with its seed, which makes the log again: `python -m tests.hostile.fuzz 1 --first SEED`.
"""

from __future__ import annotations

import argparse
import collections
import logging
import multiprocessing
import random
import resource
import signal
import tempfile
import time
import traceback
from pathlib import Path

from tests.hostile.mutations import NAME, mutated
from tests.hostile.readers import READERS, WEIGHTS

MOST_SECONDS = 10
MOST_SECONDS_OF_WAITING = 120
MOST_BYTES = 2 * 2**30


def fault_of(seed: int) -> str:
    """What is wrong with how the log of that seed is read; empty if nothing."""
    chance = random.Random(f"reader {seed}")
    [reader] = chance.choices(READERS, WEIGHTS)
    with tempfile.TemporaryDirectory() as directory:
        event_file = Path(directory) / "gradflow" / NAME
        event_file.parent.mkdir()
        event_file.write_bytes(mutated(seed))
        # Of work: what others do on the machine says nothing. And two minutes for what waits for itself.
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, _late)
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        signal.alarm(MOST_SECONDS_OF_WAITING)
        try:
            reader(Path(directory), chance)
        except Exception:
            return f"seed {seed}, {reader.__name__}:\n{traceback.format_exc(limit=-8)}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
    return ""


def _late(number: int, frame: object) -> None:
    raise TimeoutError(f"more than {MOST_SECONDS} s of work, or {MOST_SECONDS_OF_WAITING} s")


def _bounded() -> None:
    logging.disable(logging.CRITICAL)
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, used + MOST_BYTES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    seeds = range(options.first, options.first + options.count)
    kinds: collections.Counter[str] = collections.Counter()
    with multiprocessing.get_context("spawn").Pool(options.processes, _bounded, maxtasksperchild=2000) as pool:
        for fault in filter(None, pool.imap_unordered(fault_of, seeds, chunksize=20)):
            lines = fault.strip().splitlines()
            places = [line.strip() for line in lines if "tb_gradflow" in line and line.strip().startswith("File")]
            kind = f"{places[-1].rpartition('/')[2] if places else lines[0]}: {lines[-1][:100]}"
            kinds[kind] += 1
            if kinds[kind] == 1:
                print(fault, flush=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{options.count} logs in {time.monotonic() - began:.0f} s, {sum(kinds.values())} faults, peak {peak:.0f} MB")
    for kind, count in kinds.most_common():
        print(f"{count:6}  {kind}")


if __name__ == "__main__":
    main()
