"""Since when the findings of a step hold, for readers of the last step of a training that was healthy at first."""

from __future__ import annotations

from collections.abc import Mapping

from tb_gradflow.errors import LogError
from tb_gradflow.record.report import Diagnosis, Finding
from tb_gradflow.serve.runs.course import MOST_OPS
from tb_gradflow.serve.runs.history import History

# The messages of these causes contain the step themselves, or how many steps were looked at.
_TELLING = (
    "nonfinite_weights", "gradient_not_applied", "loss_spike", "index_out_of_range", "gradient_clipped",
    "uneven_updates", "steps_skipped",
)  # fmt: skip
# What later steps show, but holds from the first step on: a list has always lacked a variable, and a compiled step has
# always computed with the same number.
_FROM_THE_FIRST_STEP = ("untracked_variable", "python_constant")


def beginnings(history: History, diagnosis: Diagnosis) -> Mapping[int, str]:
    """A sentence for each error and warning that began after the first recorded step, by its index among the findings.

    Earlier steps are searched in strides that double, and then between the last two: only a few, however many steps
    there are.
    """
    index = history.readable()
    steps = [step for step in index.steps if step <= diagnosis.step]
    if len(steps) < 2 or any(finding.cause == "nonfinite_weights" for finding in diagnosis.findings):
        return {}
    try:
        if len(history.trace(index.session.id, diagnosis.trace).ops) > MOST_OPS:
            return {}
        loud = [(place, each) for place, each in enumerate(diagnosis.findings) if _is_asked(each)]
        return {place: told for place, each in loud if (told := _began(history, steps, each))}
    except LogError:  # the log was deleted after the report was made
        return {}


def _is_asked(finding: Finding) -> bool:
    return finding.began is None and finding.severity != "info" and finding.cause not in _TELLING + _FROM_THE_FIRST_STEP


def _began(history: History, steps: list[int], finding: Finding) -> str:
    # One that comes and goes is found in the steps that were measured because of it.
    first = min(history.readable().with_values, default=steps[-1])
    if steps[0] < first < steps[-1] and _holds(history, first, finding):
        return f" It was first seen in step {first}."
    holds, stride = len(steps) - 1, 1
    while holds - stride >= 0 and _holds(history, steps[holds - stride], finding):
        holds, stride = holds - stride, stride * 2
    before = max(holds - stride, 0)
    if before == holds or (before == 0 and _holds(history, steps[0], finding)):
        return ""
    while holds - before > 1:
        middle = (before + holds) // 2
        before, holds = (before, middle) if _holds(history, steps[middle], finding) else (middle, holds)
    if steps[holds] == steps[before] + 1:
        return f" It started in step {steps[holds]}."
    return f" It started between the recorded steps {steps[before]} and {steps[holds]}."


def _holds(history: History, step: int, finding: Finding) -> bool:
    """Whether a step has the same finding for one of its variables, or about the same line if it names none."""
    variables = finding.variables
    return any(
        each.cause == finding.cause
        and (each.source == finding.source if not finding.variables else not set(each.variables).isdisjoint(variables))
        for each in history.diagnose(step).findings
        if each.severity != "info"
    )
