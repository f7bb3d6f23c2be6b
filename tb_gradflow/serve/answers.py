"""What the routes answer: the list of runs, and the overview of one. Knows no HTTP."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tensorboard.context import RequestContext
from tensorboard.data.provider import DataProvider

from tb_gradflow.errors import GradFlowError, LogError
from tb_gradflow.record.codec import encode
from tb_gradflow.record.schema import FORMAT
from tb_gradflow.serve.course import Course
from tb_gradflow.serve.history import Caches, History
from tb_gradflow.serve.readers import READERS
from tb_gradflow.store.layout import Tag, name_of_root, run_name
from tb_gradflow.store.provider import ProviderReader, list_runs
from tb_gradflow.store.run import RunIndex, StoredRun

Json = dict[str, Any]


class WrongRequest(GradFlowError):
    """A parameter is missing, or is not what it should be."""


class NotThere(GradFlowError):
    """There is no such run or file."""


class Runs:
    """The runs of a DataProvider, each with its history. `logdir` is where they lie, empty if unknown."""

    def __init__(self, provider: DataProvider, logdir: str) -> None:
        self._provider = provider
        self._logdir = logdir
        self._caches = Caches()
        self._histories: dict[tuple[str, str], History] = {}
        self._courses: dict[tuple[str, str], Course] = {}
        self._lock = threading.Lock()

    def entries(self, context: RequestContext, experiment_id: str) -> list[Json]:
        """One entry for each run that has a session of ours, by name; those that cannot be read say why."""
        runs = list_runs(self._provider, context, experiment_id)
        with ThreadPoolExecutor(READERS) as readers:
            problems = readers.map(
                lambda listed: self._problem(self._history(context, experiment_id, listed[0]), listed[1]), runs.items()
            )
            return [
                {"run": run, "name": self._name(run, runs), "error": problem}
                for run, problem in zip(runs, problems, strict=True)
            ]

    def history(self, context: RequestContext, experiment_id: str, run: str) -> History:
        """Raises NotThere if there is no such run."""
        with self._lock:
            known = self._histories.get((experiment_id, run))
        if known is not None:
            return known
        if run not in list_runs(self._provider, context, experiment_id, run):
            raise NotThere(f"no run {run!r} with gradients: it was deleted, or TensorBoard has not loaded it yet")
        return self._history(context, experiment_id, run)

    def course(self, context: RequestContext, experiment_id: str, run: str) -> Json:
        """Which findings there were over the steps, as far as they were looked at. Raises NotThere."""
        history = self.history(context, experiment_id, run)
        with self._lock:
            course = self._courses.setdefault((experiment_id, run), Course())
        return {"format": FORMAT, **course.look(history)}

    def name(self, context: RequestContext, experiment_id: str, run: str) -> str:
        """What a person calls a run."""
        alone = run_name(run) != "."
        return self._name(run, () if alone else list_runs(self._provider, context, experiment_id))

    def _name(self, run: str, runs: Collection[str]) -> str:
        name = run_name(run)
        return name if name != "." else name_of_root(self._logdir, run, {run_name(each) for each in runs})

    def _history(self, context: RequestContext, experiment_id: str, run: str) -> History:
        reader = ProviderReader(self._provider, context, experiment_id, run)
        history = History(StoredRun(reader), f"{experiment_id}/{run}", self._caches)
        with self._lock:
            return self._histories.setdefault((experiment_id, run), history)

    @staticmethod
    def _problem(history: History, tags: set[Tag]) -> str | None:
        try:
            history.newest_session(tags)
        except LogError as error:
            return str(error)
        return None


def overview(run: str, name: str, history: History) -> Json:
    """What the page must know of a run before it asks for any number."""
    return overview_of(history.refresh(), run, name)


def overview_of(index: RunIndex, run: str, name: str) -> Json:
    """The same of what was found in a run."""
    return {
        "format": FORMAT,
        "run": run,
        "name": name,
        "session": encode(index.session),
        "earlier_sessions": index.earlier,
        "cost": None if index.cost is None else {**encode(index.cost), "share": index.cost.share},
        "traces": list(index.traces),
        "chunks": [{"id": head.id, "trace": head.trace, "steps": list(head.steps)} for head in index.chunks],
        "steps": list(index.steps),
        "step_trace": [head.trace for head in index.chunks for _ in head.steps],
        "wall_times": [time for head in index.chunks for time in head.wall_times],
        "losses": [
            [loss if math.isfinite(loss) else None for loss in losses]
            for head in index.chunks
            for losses in head.losses
        ],
    }
