"""The contents of the routes' responses: the list of runs, and the overview of one. Knows no HTTP."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from tb_gradflow.errors import GradFlowError, LogError
from tb_gradflow.record.codec import encode
from tb_gradflow.record.schema import FORMAT
from tb_gradflow.serve.runs.background import Background
from tb_gradflow.serve.runs.course import Course
from tb_gradflow.serve.runs.history import Caches, History
from tb_gradflow.serve.runs.shared_settings import shared_settings, varying
from tb_gradflow.serve.runs.standing import Health, Standing, standing_or_unknown
from tb_gradflow.store.hyperparameters import Hyperparameters, of_run
from tb_gradflow.store.layout import Tag, name_of_root, run_name
from tb_gradflow.store.run import RunIndex, StoredRun, newest_session
from tb_gradflow.store.source import Source

LOGGER = logging.getLogger("tb_gradflow")

Json = dict[str, Any]
Found = TypeVar("Found")

FEW_RUNS = 8
"""With this few runs, the list waits until all of them are analysed; with more, it waits for some of them."""
SECONDS_FOR_FEW = 1.0
SECONDS_FOR_MANY = 0.25
# A page that repeats the request gets more.
SECONDS_OF_JUDGING = 0.5


JUST_NOW = 1.0
"""Seconds in which the log of a run need not be read again: a page opens a run that was analysed a moment ago."""


class WrongRequest(GradFlowError):
    """A parameter is missing or invalid."""


class NotThere(GradFlowError):
    """There is no such run or file."""


class _Key(NamedTuple):
    """A run as it was when it was analysed.

    Attributes:
        steps: The tag of its newest chunk of steps.
    """

    experiment_id: str
    run: str
    session: str
    steps: Tag | None


class _Look(NamedTuple):
    """What the list says about a run immediately.

    Attributes:
        problem: Why it cannot be read.
        health: None if the run was not analysed yet.
    """

    problem: str | None
    health: Health | None


class Runs:
    """The runs of a source, each with its history. `logdir` is their directory, empty if unknown.

    A `context` is TensorBoard's; other sources ignore it.
    """

    def __init__(self, source: Source, logdir: str) -> None:
        self._source = source
        self._logdir = logdir
        self._caches = Caches()
        self._histories: dict[tuple[str, str], History] = {}
        self._courses: dict[tuple[str, str], Course] = {}
        self._looks: Background[_Key, _Look] = Background()
        self._standings: Background[_Key, Standing] = Background()
        self._lock = threading.Lock()

    def entries(self, context: Any, experiment_id: str) -> list[Json]:
        """One entry for each run with a session of ours, by name; a run that cannot be read has the reason.

        If there are many runs, the newest are analysed for a moment; the others do not have a health yet.
        """
        runs = self._source.runs(context, experiment_id)
        seconds = SECONDS_FOR_FEW if len(runs) <= FEW_RUNS else SECONDS_FOR_MANY
        # With a single run, the page shows it anyway.
        look = self._problem if len(runs) == 1 else self._health
        looks = self._looks.ask(self._jobs(context, experiment_id, runs, look), seconds)
        told = {key.run: found for key, found in looks.items()}
        return [
            {
                "run": run,
                "name": self._name(run, runs),
                "error": told[run].problem if run in told else None,
                "began": int(newest_session(tags)) / 1000,
                "health": told[run].health if run in told else None,
            }
            for run, tags in runs.items()
        ]

    def standings(self, context: Any, experiment_id: str) -> Json:
        """The state of each run, as far as it is known."""
        runs = self._source.runs(context, experiment_id)
        known = self._standings.ask(self._jobs(context, experiment_id, runs, self._standing), SECONDS_OF_JUDGING)
        logged = self._hyperparameters(context, experiment_id)
        told = {
            key.run: replace(standing, hyperparameters=of_run(run_name(key.run), logged))
            for key, standing in known.items()
        }
        entries = [{"run": run, "name": self._name(run, runs), **told[run].to_json()} for run in runs if run in told]
        is_complete = len(entries) == len(runs)
        # The remaining runs may not share what the first runs do.
        said = shared_settings(list(told.values())) if is_complete else []
        names = varying(list(told.values()), said)
        return {"format": FORMAT, "runs": entries, "complete": is_complete, "shared": said, "hyperparameters": names}

    def _hyperparameters(self, context: Any, experiment_id: str) -> Mapping[str, Hyperparameters]:
        try:
            return self._source.hyperparameters(context, experiment_id)
        except Exception:
            # Hyperparameters are optional: a provider that cannot list them must not break the list of runs.
            LOGGER.debug("the hyperparameters cannot be read", exc_info=True)
            return {}

    def history(self, context: Any, experiment_id: str, run: str) -> History:
        """Raises NotThere if there is no such run."""
        with self._lock:
            known = self._histories.get((experiment_id, run))
        if known is not None:
            return known
        if not self._source.has(context, experiment_id, run):
            raise NotThere(f"no run {run!r} with gradients: it was deleted, or TensorBoard has not loaded it yet")
        return self._history(context, experiment_id, run)

    def course(self, context: Any, experiment_id: str, run: str) -> Json:
        """The findings over the steps, as far as these were analysed. Raises NotThere."""
        history = self.history(context, experiment_id, run)
        with self._lock:
            course = self._courses.setdefault((experiment_id, run), Course())
        return {"format": FORMAT, **course.look(history), "damage": history.damage}

    def name(self, context: Any, experiment_id: str, run: str) -> str:
        """The displayed name of a run."""
        alone = run_name(run) != "."
        return self._name(run, () if alone else self._source.runs(context, experiment_id))

    def _name(self, run: str, runs: Collection[str]) -> str:
        name = run_name(run)
        return name if name != "." else name_of_root(self._logdir, run, {run_name(each) for each in runs})

    def _history(self, context: Any, experiment_id: str, run: str) -> History:
        key = (experiment_id, run)
        with self._lock:
            if key not in self._histories:
                reader = self._source.reader(context, experiment_id, run)
                self._histories[key] = History(StoredRun(reader), f"{experiment_id}/{run}", self._caches)
            return self._histories[key]

    def _jobs(
        self,
        context: Any,
        experiment_id: str,
        runs: Mapping[str, Collection[Tag]],
        look: Callable[[History, Collection[Tag]], Found],
    ) -> dict[_Key, Callable[[], Found]]:
        """The analyses to request for each run, the newest first; a run that has grown has another key."""
        sessions = {run: newest_session(tags) for run, tags in runs.items()}
        return {
            _Key(experiment_id, run, sessions[run], _newest_steps(runs[run])): partial(
                look, self._history(context, experiment_id, run), runs[run]
            )
            for run in sorted(runs, key=lambda run: sessions[run], reverse=True)
        }

    @staticmethod
    def _problem(history: History, tags: Collection[Tag]) -> _Look:
        try:
            history.newest_session(tags)
        except LogError as error:
            return _Look(str(error), None)
        return _Look(None, None)

    @classmethod
    def _health(cls, history: History, tags: Collection[Tag]) -> _Look:
        found = cls._problem(history, tags)
        if found.problem is not None:
            return found
        return _Look(None, standing_or_unknown(history, since=False, tags=tags).health)

    @staticmethod
    def _standing(history: History, tags: Collection[Tag]) -> Standing:
        return standing_or_unknown(history, tags=tags)


def _newest_steps(tags: Collection[Tag]) -> Tag | None:
    """The newest chunk, which changes when the run grows."""
    steps = (tag for tag in tags if tag.kind == "steps")
    return max(steps, key=lambda tag: (tag.session, tag.number), default=None)


def overview(run: str, name: str, history: History) -> Json:
    """What the page must know about a run before it requests statistics."""
    return overview_of(history.refresh(within=JUST_NOW), run, name)


def overview_of(index: RunIndex, run: str, name: str) -> Json:
    """The same for the findings of a run."""
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
