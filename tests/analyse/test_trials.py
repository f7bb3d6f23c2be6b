"""Edits that were tried in a recorded step: those that work come first, and those that do not are not offered."""

from __future__ import annotations

from tb_gradflow.analyse.report.trials import as_tried
from tb_gradflow.analyse.user_code.candidate import Candidate
from tb_gradflow.record.report import Edit
from tb_gradflow.record.schema import Trace, Trial, TrialNorm


def candidate(after: str) -> Candidate:
    return Candidate(Edit("model.py", 3, 3, "x = tf.round(x)", after), f"costs {after}")


def trial(after: str, *, works: bool) -> Trial:
    return Trial("model.py", 3, 3, after, works, (1.0, 1.0), (TrialNorm("w", 0.5),), step=7)


def trace(*trials: Trial) -> Trace:
    return Trace(0, (), (), (), (), (), (), (), (), trials=trials)


def test_an_edit_that_works_comes_before_one_that_was_not_tried() -> None:
    [first, second], _ = as_tried(trace(trial("b", works=True)), [candidate("a"), candidate("b")])

    assert (first.edit.after, first.cost, second.edit.after) == ("b", "costs b", "a")
    assert first.tried is not None
    assert first.tried.step == 7
    assert first.tried.gradient_norm[0].norm == 0.5
    assert second.tried is None


def test_an_edit_that_does_not_work_is_not_offered() -> None:
    assert as_tried(trace(trial("a", works=False)), [candidate("a")]) == ([], "")


def test_a_trial_of_other_lines_says_nothing() -> None:
    [only], _ = as_tried(trace(trial("other", works=False)), [candidate("a")])

    assert only.tried is None


def test_an_edit_that_could_not_be_run_is_offered_with_the_reason() -> None:
    could_not = Trial("model.py", 3, 3, "a", works=False, not_tried="It ran before the step.")

    [only], reason = as_tried(trace(could_not), [candidate("a")])

    assert only.tried is None
    assert reason == "It ran before the step."
