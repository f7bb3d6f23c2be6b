"""Tries the edits of a report: each is applied to the functions in memory, and the step is run again and rolled back.

An edit works if the program runs, the loss is finite, each variable of its finding is connected, its finding is gone,
and no variable that was connected before is worse off. Edits that do not work are left out. If an edit alone does not
work, it is tried together with those of the other findings: a path may be cut twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tb_gradflow.analyse.user_code.code import program_of
from tb_gradflow.analyse.user_code.definitions import definition_of_variable
from tb_gradflow.record.report import Alternative, Diagnosis, Edit, Finding, Tried, VariableNorm
from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.explain.edited_code import RUN_BEFORE, CannotApplyError, Ran, edited
from tb_gradflow.trace.graph.variables import listed_sources

MOST_RUNS = 30
"""The maximum number of runs of a step to try edits."""

_BUILT = "The layers are already built for the shapes of the current program, so the edit could not be tried."
_TOO_MANY = f"It was not tried: the step has already been run {MOST_RUNS} times for other edits."

_NO_INFLUENCE = frozenset({"shift_invariant_parameter"})

# A variable with one of these had a gradient before.
_WELL = frozenset({"connected", "vanishing", "exploding"})


@dataclass(frozen=True, slots=True)
class Seen:
    """A step: its diagnosis, and the value of each of its targets.

    Attributes:
        losses: Empty if the step was not completed.
    """

    diagnosis: Diagnosis
    losses: tuple[float, ...]


def with_tried(before: Seen, run: Callable[[], Seen], variables: Mapping[str, Any] | None = None) -> Diagnosis:
    """The diagnosis, with what its edits do, the best first; `run` runs the step again. `variables` are those of the
    step, by what the program calls them."""
    trials = _Trials(before, run, variables or {})
    tried = [_tried_alone(finding, trials) for finding in before.diagnosis.findings]
    working = _apart(each.edit for each in tried if each.edit is not None and each.tried is not None)
    left = [
        _tried_together(finding, trials, working) if now.edit is None and finding.edit is not None else now
        for finding, now in zip(before.diagnosis.findings, tried, strict=True)
    ]
    return replace(before.diagnosis, findings=tuple(left))


def variables_as_called(trace: Trace, variables: Any) -> dict[str, Any]:
    """The variables that `explain` was given, by the names that the program has for them, where these are plain."""
    passages, found = program_of(trace).passages, {}
    for each in listed_sources(variables):
        name = str(getattr(each, "path", None) or getattr(each, "name", "")).partition(":")[0]
        defined = definition_of_variable(passages, name) if name else None
        if defined is not None and defined.bound_to.isidentifier():
            found[defined.bound_to] = each
    return found


@dataclass(slots=True)
class _Trials:
    """Runs each combination of edits once, and remembers the result."""

    before: Seen
    run: Callable[[], Seen]
    variables: Mapping[str, Any]
    known: dict[tuple[Edit, ...], Seen | str | None] = field(default_factory=dict)

    def of(self, edits: Sequence[Edit]) -> Seen | str | None:
        """The result of the step with the edits; or the reason why they were not tried; `None` if the program raises
        with them.
        """
        key = tuple(sorted(edits, key=lambda each: (each.file, each.line)))
        if key not in self.known:
            self.known[key] = _TOO_MANY if len(self.known) >= MOST_RUNS else self._seen(key)
        return self.known[key]

    def _seen(self, edits: Sequence[Edit]) -> Seen | str | None:
        ran: Ran | None = None
        try:
            with edited(edits, self.variables) as ran:
                seen = self.run()
        except CannotApplyError as error:
            return str(error)
        except Exception as error:
            if ran is not None and ran.half_of_it:
                return RUN_BEFORE
            # Whatever the error is, the edited program does not run, unless it would with newly built layers.
            return _BUILT if "incompatible with the layer" in str(error) else None
        return seen if ran.all_of_it else RUN_BEFORE

    def tried(self, finding: Finding, edits: Sequence[Edit], *, with_others: bool = False) -> Tried | str | None:
        """The result of the edits for a finding, or the reason why they were not tried; `None` if the program does not
        run.
        """
        now = self.of(edits)
        if now is None or isinstance(now, str):
            return now
        reports = {each.name: each for each in now.diagnosis.variables}
        named = [reports[name] for name in finding.variables if name in reports]
        norms = [
            VariableNorm(each.name, each.gradient.norm)
            for each in named
            if each.gradient is not None and each.gradient.norm > 0 and not _not_finite(each.gradient.norm)
        ]
        loss = (_loss(self.before, finding.target), _loss(now, finding.target))
        works = (
            len(named) == len(finding.variables)
            and self._arrives(finding, {each.name: each.status for each in named}, now.diagnosis)
            and loss[1] is not None
            and not any(_is_same(finding, each) for each in now.diagnosis.findings)
            and not self._harms(finding, now.diagnosis)
        )
        return Tried(works, loss, tuple(norms), with_others)

    def _arrives(self, finding: Finding, statuses: Mapping[str, str], now: Diagnosis) -> bool:
        """Whether a gradient arrives at all variables of a finding, and is not zero at one of them at least."""
        before = {each.name: each.status for each in self.before.diagnosis.variables}
        # The bias of an attention key has no influence, whatever else is fixed.
        idle = {name for each in now.findings if each.cause in _NO_INFLUENCE for name in each.variables}
        for name, status in statuses.items():
            well = {"connected"}
            if name in idle:
                well.update(("zero", "vanishing"))
            if before.get(name) in ("nan", "inf"):
                well.add("exploding")
            if finding.cause == "variable_assign":
                # A state that starts as zeros leaves the weights that multiply it without a gradient in this step.
                well.add("zero")
            if status not in well:
                return False
        return not {"connected", "exploding"}.isdisjoint(statuses.values())

    def _harms(self, finding: Finding, now: Diagnosis) -> bool:
        # A value that is no longer written to a variable is no longer read from it.
        well = _WELL | ({"unused"} if finding.cause == "variable_assign" else set())
        after = {each.name: each.status for each in now.variables}
        return any(
            each.status in _WELL and after.get(each.name, each.status) not in well
            for each in self.before.diagnosis.variables
        )


def _tried_alone(finding: Finding, trials: _Trials) -> Finding:
    """The finding with the edits that work on their own, and with those that cannot be tried."""
    if finding.severity == "info":
        return finding
    offered = _offered(finding)
    outcomes = [trials.tried(finding, [each.edit]) for each in offered]
    working = [
        replace(each, tried=outcome)
        for each, outcome in zip(offered, outcomes, strict=True)
        if isinstance(outcome, Tried) and outcome.works
    ]
    untried = [(each, why) for each, why in zip(offered, outcomes, strict=True) if isinstance(why, str)]
    return _with(finding, [*working, *(each for each, _ in untried)], untried[0][1] if untried and not working else "")


def _tried_together(finding: Finding, trials: _Trials, others: Sequence[Edit]) -> Finding:
    """The finding with an edit that works together with those of other findings; otherwise with no edit."""
    for each in _offered(finding):
        edits = _apart([each.edit, *others])
        # If none works alone, all edits that were offered first.
        if len(edits) == 1:
            firsts = (other.edit for other in trials.before.diagnosis.findings if other.severity != "info")
            edits = _apart([each.edit, *(edit for edit in firsts if edit is not None)])
        if len(edits) == 1:
            continue
        outcome = trials.tried(finding, edits, with_others=True)
        if isinstance(outcome, Tried) and outcome.works:
            return _with(finding, [replace(each, tried=outcome)], "")
    return _with(finding, [], "")


def _offered(finding: Finding) -> list[Alternative]:
    first = [] if finding.edit is None else [Alternative(finding.edit, finding.cost)]
    return [*first, *finding.alternatives]


def _with(finding: Finding, offered: Sequence[Alternative], not_tried: str) -> Finding:
    first = offered[0] if offered else None
    return replace(
        finding,
        edit=first.edit if first is not None else None,
        cost=first.cost if first is not None else "",
        tried=first.tried if first is not None else None,
        not_tried=not_tried,
        alternatives=tuple(offered[1:]),
    )


def _apart(edits: Iterable[Edit]) -> list[Edit]:
    """The edits that change no line that an earlier edit changes."""
    kept: list[Edit] = []
    for edit in edits:
        if not any(edit.overlaps(other) for other in kept):
            kept.append(edit)
    return kept


def _is_same(finding: Finding, now: Finding) -> bool:
    return (
        now.severity != "info" and now.cause == finding.cause and not set(now.variables).isdisjoint(finding.variables)
    )


def _loss(seen: Seen, target: int) -> float | None:
    place = max(target, 0)
    value = seen.losses[place] if place < len(seen.losses) else math.nan
    return None if _not_finite(value) else float(value)


def _not_finite(value: float) -> bool:
    return not math.isfinite(value)
