"""Tries the edits of a step that was kept during a training, for its log."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

from tb_gradflow.record.report import Diagnosis, Edit, Tried
from tb_gradflow.record.schema import Trial, TrialNorm
from tb_gradflow.trace.explain.explanation import Explained
from tb_gradflow.trace.explain.tried_edits import Seen, seen, with_tried


def trials_of(explain: Callable[[], Explained], step: int, until: float | None) -> list[Trial]:
    """What the edits of a recorded step do, for its log, the best first. `explain` runs it."""

    def run() -> Seen:
        explained = explain()
        return seen(explained, explained.diagnosis())

    with silent():
        before = run()
        offered = dict(_edits(before.diagnosis))
        left = dict(_edits(with_tried(before, run, until=until))) if offered else {}
    found = [_trial(edit, tried, reason, step) for edit, (tried, reason) in left.items() if tried or reason]
    return [*found, *(_trial(edit, Tried(False, (), ()), "", step) for edit in offered if edit not in left)]


def _edits(diagnosis: Diagnosis) -> Iterator[tuple[Edit, tuple[Tried | None, str]]]:
    """Each with its result, or the reason why there is none."""
    for finding in diagnosis.findings:
        if finding.edit is not None and finding.severity != "info":
            yield finding.edit, (finding.tried, finding.not_tried)
            yield from ((each.edit, (each.tried, finding.not_tried)) for each in finding.alternatives)


def _trial(edit: Edit, tried: Tried | None, reason: str, step: int) -> Trial:
    of_edit = edit.file, edit.line, edit.end_line, edit.after
    if tried is None:
        return Trial(*of_edit, works=False, step=step, not_tried=reason)
    norms = tuple(TrialNorm(each.variable, each.norm) for each in tried.gradient_norm)
    return Trial(
        *of_edit,
        tried.works,
        tried.loss,
        norms,
        tried.with_others,
        tried.trained,
        tried.not_trained,
        tried.keeps,
        step,
    )


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """While the context is open, neither Python nor TensorFlow prints anything: the program has finished its output."""
    streams = [each for each in (sys.stdout, sys.stderr) if each is not None]
    for stream in streams:
        stream.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        for stream in streams:
            stream.flush()
        for number, before in kept.items():
            os.dup2(before, number)
            os.close(before)
        os.close(nowhere)
