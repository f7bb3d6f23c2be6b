"""Records session trainings in this process, and the programs in `programs/` in processes of their own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tb_gradflow.api import Log, open_log
from tb_gradflow.record.schema import Trace
from tb_gradflow.recorded import Recorded
from tests.serve.processes import environment

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Runs:
    """What was recorded.

    Attributes:
        directory: The log directory.
        recorded: The recording.
    """

    directory: Path
    recorded: Recorded

    @property
    def names(self) -> list[str]:
        return self.recorded.names

    def log(self, name: str | None = None) -> Log:
        """The log of a run, by default of the only one."""
        if name is None:
            [name] = self.names
        self.recorded.flush()
        return open_log(self.directory / name)

    def trace(self, name: str | None = None) -> Trace:
        """The last trace of a run."""
        history = self.log(name).recorded
        index = history.index()
        return history.trace(index.session.id, index.traces[-1])

    def rows(self, name: str | None = None) -> Any:
        """The rows of gradient statistics of the last step: by the name of the variable."""
        log = self.log(name)
        history, trace = log.recorded, self.trace(name)
        index = history.index()
        values = np.asarray(history.measured(index.session.id, index.chunks[-1]))[-1]
        return {
            trace.variables[each.variable].name: None if each.row is None else values[each.row]
            for each in trace.variable_gradients
        }


@contextlib.contextmanager
def recording(directory: Path, **options: Any) -> Iterator[Runs]:
    """Everything that trains in the context is recorded, each step if nothing else is said."""
    recorded = Recorded(lambda: str(directory), {"update_freq": 1, **options})
    recorded.start()
    try:
        yield Runs(directory, recorded)
    finally:
        recorded.stop()


def python(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """What Python does by itself."""
    directory.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env=environment(tensorflow=True),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def run(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """What it does under `tb-gradflow run`."""
    return python("-m", "tb_gradflow.cli.main", "run", *arguments, directory=directory)
