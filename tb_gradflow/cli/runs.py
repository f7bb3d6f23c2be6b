"""The runs of a log directory, by the names that the commands take."""

from __future__ import annotations

import argparse
from pathlib import Path

from tb_gradflow.api import Log, open_run
from tb_gradflow.cli.run import LOGDIR
from tb_gradflow.errors import LogError
from tb_gradflow.plain import text_of_path
from tb_gradflow.store.directory import find_runs


def add_logdir(parser: argparse.ArgumentParser) -> None:
    """For a command that reads runs, of which `default_to_newest` finds one if none is given."""
    parser.add_argument(
        "logdir",
        metavar="LOGDIR",
        nargs="?",
        help=f"a directory with one or more runs (default: the newest run below {LOGDIR})",
    )


def default_to_newest(options: argparse.Namespace) -> None:
    """Raises LogError if no directory was given, and there is none where `tb-gradflow run` writes."""
    if options.logdir is None:
        options.logdir = LOGDIR
        options.run = options.run or newest_in(LOGDIR)


def newest_in(logdir: str) -> str:
    """The run that was written last. Raises LogError."""
    if not Path(logdir).is_dir():
        raise LogError(
            f"no log directory was given, and there is no {logdir} here: give one, or record a program with "
            "`tb-gradflow run`"
        )
    runs = find_runs(logdir)

    def written(name: str) -> float:
        return max((file.stat().st_mtime for file in Path(runs[name]).rglob("*") if file.is_file()), default=0.0)

    return max(runs, key=written)


def chosen(logdir: str, name: str | None) -> dict[str, str]:
    """Name -> directory, for that run or for all runs. Raises LogError."""
    runs = find_runs(logdir)
    if name is None:
        return runs
    # Shell completion of paths leaves a slash at the end.
    name = text_of_path(name)
    known = next((each for each in (name, name.rstrip("/"), name.rstrip("/") + "/gradflow") if each in runs), None)
    if known is None:
        raise LogError(f"{logdir} has no run {name!r}: it has {', '.join(runs)}")
    return {known: runs[known]}


def opened(logdir: str, name: str, directory: str) -> Log:
    """The key of a run from the name that a person uses."""
    return open_run(logdir if name == "." else name, directory)


def run_named(logdir: str, name: str) -> Log:
    """The run with that name. Raises LogError."""
    [(known, directory)] = chosen(logdir, name).items()
    return opened(logdir, known, directory)
