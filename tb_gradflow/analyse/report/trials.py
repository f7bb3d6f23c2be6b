"""Adds the results of edits that were tried in a recorded step: edits that work come first, in the order of the
trials, which are the best first; those that do not work are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tb_gradflow.analyse.edits.widths import with_other_widths
from tb_gradflow.analyse.user_code.candidate import Candidate
from tb_gradflow.record.report import Alternative, Tried, VariableNorm
from tb_gradflow.record.schema import Trace, Trial


def as_tried(trace: Trace, candidates: Sequence[Candidate]) -> tuple[list[Alternative], str]:
    """Also says why they were not tried, if none of them works and one could not be run."""
    known = {(each.file, each.line, each.end_line, each.after): each for each in trace.trials}
    working: dict[int, Alternative] = {}
    untried: list[tuple[Alternative, str]] = []
    written = {each.name: each.written for each in trace.variables}
    for each in candidates:
        tried = [
            (edit, trial)
            for edit in (each.edit, *with_other_widths(each.edit))
            if (trial := known.get((edit.file, edit.line, edit.end_line, edit.after))) is not None
        ]
        working.update(
            (trace.trials.index(trial), Alternative(edit, each.cost, _tried(trial, written)))
            for edit, trial in tried
            if trial.works
        )
        reasons = [trial.not_tried for _, trial in tried]
        if all(reasons):
            untried.append((Alternative(each.edit, each.cost), next(iter(reasons), "")))
    left = [*(working[place] for place in sorted(working)), *(each for each, _ in untried)]
    return left, "" if working else next((reason for _, reason in untried if reason), "")


def _tried(trial: Trial, written: Mapping[str, str]) -> Tried:
    norms = tuple(
        VariableNorm(each.variable, each.norm, written.get(each.variable, "")) for each in trial.gradient_norm
    )
    return Tried(
        trial.works,
        trial.loss,
        norms,
        trial.with_others,
        step=trial.step,
        trained=trial.trained,
        not_trained=trial.not_trained,
        keeps=trial.keeps,
    )
