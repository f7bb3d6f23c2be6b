"""Adds the results of edits that were tried before the training: edits that work come first, those that do not are left
out."""

from __future__ import annotations

from collections.abc import Sequence

from tb_gradflow.analyse.user_code.candidate import Candidate
from tb_gradflow.record.report import Alternative, Tried, VariableNorm
from tb_gradflow.record.schema import Trace, Trial


def as_tried(trace: Trace, candidates: Sequence[Candidate]) -> list[Alternative]:
    known = {(each.file, each.line, each.end_line, each.after): each for each in trace.trials}
    working, untried = [], []
    for each in candidates:
        edit = each.edit
        trial = known.get((edit.file, edit.line, edit.end_line, edit.after))
        if trial is None:
            untried.append(Alternative(edit, each.cost))
        elif trial.works:
            working.append(Alternative(edit, each.cost, _tried(trial)))
    return [*working, *untried]


def _tried(trial: Trial) -> Tried:
    norms = tuple(VariableNorm(each.variable, each.norm) for each in trial.gradient_norm)
    return Tried(trial.works, trial.loss, norms, trial.with_others, before_training=True)
