"""Tries the fixes of a demonstration on its first batch, before it trains, so that its log contains the results.

A user's own program does the same with `tb_gradflow.explain(model, x, y, try_fixes=True)`.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import keras

from tb_gradflow.api import diagnosis_of
from tb_gradflow.record.report import Diagnosis, Edit, Tried
from tb_gradflow.record.schema import Trial, TrialNorm
from tb_gradflow.trace.explain.one_step import explain_model
from tb_gradflow.trace.explain.tried_edits import Seen, seen, with_tried
from tb_gradflow.trace.log.trials import trials_kept

_MOST_ROWS = 32


@contextlib.contextmanager
def fixes_tried() -> Iterator[None]:
    """While the context is open, each `fit` first tries the fixes of the findings on its first batch."""
    # Not `Model` itself: what is assigned there stays there, and hides what somebody replaces in its base class.
    owner: Any = next(each for each in keras.Model.__mro__ if "fit" in vars(each))
    fit = vars(owner)["fit"]

    def fit_with_trials(model: Any, *args: Any, **options: Any) -> Any:
        given = inspect.signature(fit).bind(model, *args, **options)
        given.apply_defaults()
        x, y, rows = (given.arguments.get(name) for name in ("x", "y", "batch_size"))
        with trials_kept(_trials(model, x, y, rows or _MOST_ROWS)):
            return fit(model, *args, **options)

    owner.fit = fit_with_trials
    try:
        yield
    finally:
        owner.fit = fit


def _trials(model: Any, x: Any, y: Any, rows: int) -> list[Trial]:
    def run() -> Seen:
        explained = explain_model(model, x, y, None, rows, terms=False, trains=True)
        return seen(explained, diagnosis_of(explained))

    before = run()
    offered = {edit for edit, _ in _edits(before.diagnosis)}
    left = dict(_edits(with_tried(before, run))) if offered else {}
    works = [_trial(edit, tried) for edit, tried in left.items() if tried is not None]
    return [*works, *(_trial(edit, Tried(False, (), ())) for edit in offered - set(left))]


def _edits(diagnosis: Diagnosis) -> Iterator[tuple[Edit, Tried | None]]:
    for finding in diagnosis.findings:
        if finding.edit is not None and finding.severity != "info":
            yield finding.edit, finding.tried
            yield from ((each.edit, each.tried) for each in finding.alternatives)


def _trial(edit: Edit, tried: Tried) -> Trial:
    norms = tuple(TrialNorm(each.variable, each.norm) for each in tried.gradient_norm)
    return Trial(
        edit.file,
        edit.line,
        edit.end_line,
        edit.after,
        tried.works,
        tried.loss,
        norms,
        tried.with_others,
        tried.trained,
        tried.not_trained,
        tried.keeps,
    )
