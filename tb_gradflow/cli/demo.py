"""`tb-gradflow demo`: trains models that do not learn, says why they do not, and shows it in TensorBoard."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tb_gradflow.api import open_run
from tb_gradflow.demo.gallery import Demo, chosen
from tb_gradflow.store.directory import find_runs

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

LOGDIR = os.path.join("logs", "demo")

# What a shell reports of a program that SIGTERM ended.
TERMINATED = 143

ADDRESS = re.compile(r"TensorBoard \S+ at (http://\S+)")


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "demo",
        help="train broken models and see in TensorBoard what is wrong with them",
        description="Train broken models and their repaired versions, print what is wrong with each, and open "
        "TensorBoard on their logs. Takes about two minutes on two cores.",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these demonstrations (default: all)")
    parser.add_argument("--logdir", metavar="DIR", default=LOGDIR, help=f"where the runs go (default: {LOGDIR})")
    parser.add_argument("--no-serve", action="store_true", help="do not start TensorBoard")
    parser.add_argument("--list", action="store_true", help="only say which demonstrations there are")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    demos = chosen(options.names)
    if options.list:
        for demo in demos:
            print(f"{demo.name:<12}  {demo.promise}")
        return 0
    # TensorFlow reads these once, when it is loaded. Its notes on the machine say nothing to a visitor.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    for demo in demos:
        train(demo, options.logdir)
    directories = find_runs(options.logdir)
    for name in (name for demo in demos for name in demo.runs(options.logdir)):
        print(f"\n{open_run(name, directories[name]).report()}\n")
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={options.logdir}"]
    if options.no_serve:
        print(f"Look at them:  tensorboard --logdir {shlex.quote(options.logdir)}")
        return 0
    return serve(command)


def train(demo: Demo, logdir: str) -> None:
    """Trains every version of a demonstration, telling how far it is."""
    program = demo.load()
    print(f"{demo.promise}\n{os.path.relpath(demo.path)}", flush=True)
    for (name, directory), (_, fixed) in zip(demo.runs(logdir).items(), demo.variants, strict=True):
        print(f"\n{name}: the first step compiles the model, and may take a while", flush=True)
        began = time.monotonic()
        program(directory, fixed=fixed)
        print(f"{name}: trained in {time.monotonic() - began:.0f} s, recorded in {directory}", flush=True)
    print(flush=True)


def serve(command: list[str]) -> int:
    """Runs TensorBoard until it ends or is interrupted, and tells the address of the tab."""
    # A terminated parent must not leave a server behind on its port.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            found = ADDRESS.search(line)
            if found:
                print(f"\nOpen {found[1].rstrip('/')}/#gradflow  (Ctrl-C ends)", flush=True)
            else:
                sys.stderr.write(line)
        return process.wait()
    except KeyboardInterrupt:
        print()
        return 0
    finally:
        process.terminate()
        process.communicate()
