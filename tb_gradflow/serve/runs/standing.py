"""The state of a run in a line, for the list of all runs on the page and in a terminal."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tb_gradflow.errors import LogError
from tb_gradflow.plain import one_line
from tb_gradflow.record.report import Diagnosis, Finding
from tb_gradflow.serve.runs.course import MOST_OPS
from tb_gradflow.serve.runs.history import History
from tb_gradflow.store.hyperparameters import Hyperparameters
from tb_gradflow.store.layout import Tag
from tb_gradflow.store.run import RunIndex

LOGGER = logging.getLogger("tb_gradflow")

Json = dict[str, Any]

Health = Literal["error", "warning", "healthy", "unknown"]

WORST_FIRST: tuple[Health, ...] = ("error", "warning", "unknown", "healthy")
"""An unknown state could be anything, so it comes before healthy runs."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of one run at its last recorded step.

    Attributes:
        health: The severity of the worst finding; `healthy` if there is no error and no warning; `unknown` if the log
            cannot be read, or nothing was recorded yet.
        summary: One sentence; if the health is unknown, the reason.
        cause: The cause of the worst error or warning; empty if there is none.
        place: The line of code of that finding, as `file:line`; empty if it has none.
        first: The first recorded step with an error or a warning, since when there has been one without interruption;
            None for a healthy run, and if it is not known.
        step: The last recorded step; -1 if none was completed.
        steps: Number of recorded steps.
        loss: The value at the last step of the first target whose value was recorded; None if it was not finite, or if
            there is none.
        has_loss: Whether there is one.
        recorded: Seconds since the epoch when the last step was recorded; else when the recording began.
        hyperparameters: As HParams logged them in the run's directory; empty if it did not.
    """

    health: Health
    summary: str
    cause: str = ""
    place: str = ""
    first: int | None = None
    step: int = -1
    steps: int = 0
    loss: float | None = None
    has_loss: bool = False
    recorded: float = 0.0
    hyperparameters: Hyperparameters = field(default_factory=dict)

    def to_json(self) -> Json:
        """The form in docs/http.md."""
        return asdict(self)


def standing_of(
    history: History,
    diagnosis: Diagnosis | None = None,
    *,
    since: bool = True,
    tags: Collection[Tag] | None = None,
) -> Standing:
    """The standing of a run; `since` also searches for the first step with an error or a warning, which takes some more
    diagnoses. `tags` are those of the run, if they were listed just now.

    Raises LogError if the run cannot be read.
    """
    last = history.last(history.refresh(tags))
    index = history.readable()
    diagnosis = diagnosis or history.diagnose(last)
    worst = worst_of(diagnosis.findings)
    found = index.find(diagnosis.step)
    targets = () if found is None else history.trace(index.session.id, found[0].trace).targets
    losses = () if found is None else found[0].losses[found[1]]
    loss = next((loss for target, loss in zip(targets, losses, strict=False) if target.measured), None)
    return Standing(
        health="healthy" if worst is None or worst.severity == "info" else worst.severity,
        summary=diagnosis.summary,
        cause="" if worst is None else worst.cause,
        place="" if worst is None or worst.source is None else f"{worst.source.file}:{worst.source.line}",
        first=first_trouble(history, index, diagnosis) if since else None,
        step=diagnosis.step,
        steps=len(index.steps),
        loss=loss if loss is not None and math.isfinite(loss) else None,
        has_loss=loss is not None,
        recorded=int(index.session.id) / 1000 if found is None else found[0].wall_times[found[1]],
    )


def standing_or_unknown(history: History, *, since: bool = True, tags: Collection[Tag] | None = None) -> Standing:
    """The same, but `unknown` for a run that cannot be read or analysed."""
    try:
        return standing_of(history, since=since, tags=tags)
    except LogError as error:
        return unknown(str(error))
    except Exception:
        # A bug of ours in one run must not break the list of all runs. Opening that run shows the error.
        LOGGER.exception("%s could not be analysed", one_line(history.name))
        return unknown("This run could not be analysed: open it to see why.")


def unknown(problem: str) -> Standing:
    """The standing of a run whose log cannot be read, or has no step yet."""
    return Standing("unknown", problem)


def worst_of(findings: Sequence[Finding]) -> Finding | None:
    """The first of the most severe findings that are more than information."""
    loud = (finding for severity in ("error", "warning") for finding in findings if finding.severity == severity)
    return next(loud, None)


def first_trouble(history: History, index: RunIndex, diagnosis: Diagnosis) -> int | None:
    """Where the errors or warnings of a step began: a binary search, so that a hundred steps take seven diagnoses.

    If they paused in between, the last beginning is returned. Not searched in models that take long to analyse.
    """
    if not _is_troubled(diagnosis):
        return None
    steps = [step for step in index.steps if step <= diagnosis.step]
    if not steps:
        return None
    if len(steps) > 1 and len(history.trace(index.session.id, diagnosis.trace).ops) > MOST_OPS:
        return None
    return _first(steps, lambda step: _is_troubled(history.diagnose(step)))


def _first(steps: Sequence[int], holds: Callable[[int], bool]) -> int:
    """The first step from which on the condition holds; it holds at the last step."""
    if holds(steps[0]):
        return steps[0]
    before, after = 0, len(steps) - 1
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if holds(steps[middle]) else (middle, after)
    return steps[after]


def _is_troubled(diagnosis: Diagnosis) -> bool:
    return any(finding.severity != "info" for finding in diagnosis.findings)


def worst_first(standings: Iterable[tuple[str, Standing]]) -> list[tuple[str, Standing]]:
    """Errors before warnings, the newest first within each."""
    return sorted(standings, key=lambda each: (WORST_FIRST.index(each[1].health), -each[1].recorded))
