"""Tries the edits of a report: each is applied to the functions in memory, and the step is run again and rolled back.

An edit works if the program runs, the loss is finite, each variable of its finding is connected, its finding is gone,
and no variable that was connected before is worse off; and if some steps of training with it train these variables: see
`_trains`. Edits that do not work are left out, and the one that trains best comes first: the edits may change what the
loss is, so what counts is the loss of the step itself with what was learned. If an edit alone does not
work, it is tried together with those of the other findings: a path may be cut twice.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow as tf

from tb_gradflow.analyse.causes.catalogue import CATALOGUE
from tb_gradflow.analyse.edits.widths import NEAR, with_other_widths
from tb_gradflow.analyse.report.quoted import with_code_of
from tb_gradflow.analyse.user_code.code import program_of
from tb_gradflow.analyse.user_code.definitions import definition_of_variable
from tb_gradflow.record.report import Alternative, Diagnosis, Edit, Finding, Tried, VariableNorm
from tb_gradflow.record.schema import Kept, MetricTrial, Trace, Trained
from tb_gradflow.trace.engine.repeated import NotCompiled, NotRepeatable
from tb_gradflow.trace.experiments.training import Course, Training
from tb_gradflow.trace.explain.edited_code import RUN_BEFORE, CannotApplyError, Ran, edited
from tb_gradflow.trace.explain.explanation import Explained
from tb_gradflow.trace.explain.extended_optimizers import extended, unknown_noted
from tb_gradflow.trace.graph.variables import listed_sources

MOST_RUNS = 30
"""The maximum number of runs of a step to try edits."""

STEPS = 20
"""How many steps a program is trained with an edit."""

MOST_SECONDS = 10.0
"""The maximum time for the steps with one edit."""

_MOST_SECONDS_OF_ALL = 60.0
"""The maximum time for those with all edits."""

_WORSE = 0.01
"""By which part of its first value a loss may rise in the training: learning rates overshoot."""

_LEARNED = 0.1
"""Which part of its first value a loss loses if something is learned."""

_STILL = 1e-6
"""A variable has moved if an element changes by a larger part of the largest: this is ten times the rounding."""

_DEAD = 1e-3
"""A gradient has died if it is a smaller part of what it was."""

_ROUNDING = 1e-5
"""The same loss, computed by other ops, differs by a smaller part."""

_BUILT = "The layers are already built for the shapes of the current program, so the edit could not be tried."
_NOT_BUILT = (
    "The optimizer was built without variables that the edit lets it train, so the edit could not be tried in a step: "
    "run the program with it."
)
_UNKNOWN_VARIABLE = "This optimizer can only be called for the variables it was originally built with"  # in Keras 3
_NO_TIME = (
    "It was not tried: that would take too large a part of this run's time. `tb-gradflow run --try-fixes PROGRAM` "
    "tries it, and so does `try_fixes=True`."
)
_OTHER_REQUEST = "The step runs with it, and requests the gradient of something else."
_NO_LOSS = "It was not tried: the step is compiled for that, and raises before its loss is known."
_TOO_MANY = f"It was not tried: the step has already been run {MOST_RUNS} times for other edits."

_RUN_EAGERLY = "the step runs eagerly, and its Python would run again in each step"

_NO_INFLUENCE = frozenset({"shift_invariant_parameter"})
_GROWING = frozenset({"vanishing_depth", "zero_init_by_design"})

# A variable with one of these had a gradient before.
_WELL = frozenset({"connected", "vanishing", "exploding"})


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """A step: its diagnosis, and the value of each of its targets.

    Attributes:
        losses: Empty if the step was not completed.
        trace: Its structure; `None` if it can only be compiled with an edit.
        shapes: Those of what is differentiated, by target; `None` if they are not known.
        training: What trains it; `None` if it ran eagerly.
        raised: The error that it raises; empty if none.
        metrics: As of `Explained`.
    """

    diagnosis: Diagnosis
    losses: tuple[float, ...]
    trace: Trace | None
    shapes: Mapping[int, Sequence[str]] | None
    training: Training | None
    raised: str = ""
    metrics: Callable[[], tuple[MetricTrial, ...]] = tuple


def seen(explained: Explained, diagnosis: Diagnosis) -> StepOutcome:
    """The step that was explained."""
    losses = explained.record.losses if explained.record is not None else ()
    training = explained.training
    shapes = None if training is None else training.shapes()
    return StepOutcome(diagnosis, losses, explained.trace, shapes, training, explained.raised, explained.metrics)


def with_tried(
    before: StepOutcome,
    run: Callable[[], StepOutcome],
    variables: Mapping[str, Any] | None = None,
    until: float | None = None,
) -> Diagnosis:
    """The diagnosis, with what its edits do, the best first; `run` runs the step again. `variables` are those of the
    step, by what the program calls them. After `until`, on the monotonic clock, no other edit is tried."""
    trials = _Trials(before, run, variables or {}, until=until)
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
    """Runs and trains the step with each combination of edits once, and remembers the result."""

    before: StepOutcome
    run: Callable[[], StepOutcome]
    variables: Mapping[str, Any]
    known: dict[tuple[Edit, ...], StepOutcome | str | None] = field(default_factory=dict)
    courses: dict[tuple[Edit, ...], Course | str | None] = field(default_factory=dict)
    originals: dict[tuple[Edit, ...], Mapping[int, float]] = field(default_factory=dict)
    lent: list[Any] = field(default_factory=list)
    seconds: float = _MOST_SECONDS_OF_ALL
    until: float | None = None
    noise: bool | None = None

    @property
    def seconds_left(self) -> float:
        """Seconds for the training that begins now."""
        left = self.seconds if self.until is None else min(self.seconds, self.until - time.monotonic())
        return min(MOST_SECONDS, left)

    def of(self, edits: Sequence[Edit]) -> StepOutcome | str | None:
        """The result of the step with the edits; or the reason why they were not tried; `None` if the program raises
        with them.
        """
        key = _in_order(edits)
        if key not in self.known:
            if self.until is not None and time.monotonic() > self.until:
                return _NO_TIME
            self.known[key] = _TOO_MANY if len(self.known) >= MOST_RUNS else self._seen(key)
        return self.known[key]

    def _seen(self, edits: Sequence[Edit]) -> StepOutcome | str | None:
        with unknown_noted() as unknown:
            now = self._ran(edits)
        if now != _NOT_BUILT or not unknown:
            return now
        with contextlib.ExitStack() as undo:
            try:
                self.lent += undo.enter_context(extended(unknown))
            except Exception:  # an optimizer of the user's may have no configuration
                return now
            return self._ran(edits)

    def _ran(self, edits: Sequence[Edit]) -> StepOutcome | str | None:
        ran: Ran | None = None
        try:
            with edited(edits, self.variables) as ran:
                now = self.run()
        except CannotApplyError as error:
            return str(error)
        except NotCompiled as reason:
            return f"It was not tried in this step: {reason}." if self.before.trace is None else None
        except Exception as error:
            if ran is not None and (ran.half_of_it or ran.lacks(error)):
                return RUN_BEFORE
            # Whatever the error is, the edited program does not run, unless it would with newly built layers.
            return _BUILT if "incompatible with the layer" in str(error) else None
        if now.raised and not self.before.raised:
            return _NOT_BUILT if _UNKNOWN_VARIABLE in now.raised else None
        return now if ran.all_of_it else RUN_BEFORE

    @property
    def varies(self) -> bool:
        """Whether the step has another loss each time, although its random numbers are held equal: then the losses
        with an edit and without it cannot be compared."""
        if self.noise is None:
            try:
                again = self.run().losses
            except Exception:  # it depends on something that has changed
                again = ()
            self.noise = len(again) != len(self.before.losses) or not all(map(_is_same_loss, self.before.losses, again))
        return self.noise

    def course(self, edits: Sequence[Edit]) -> Course | str | None:
        """What some steps of training did with the edits; or the reason why there were none; `None` if the program
        raises in one of them."""
        key = _in_order(edits)
        if key not in self.courses:
            now = self.known[key] if key else self.before
            training = now.training if isinstance(now, StepOutcome) else None
            course = _RUN_EAGERLY if training is None else self._course(training)
            if isinstance(course, Course):
                self.originals[key] = self._original(course)
                course = replace(course, values={})
            self.courses[key] = course
            if key and isinstance(now, StepOutcome):  # a trace is large
                self.known[key] = replace(now, training=None)
        return self.courses[key]

    def _original(self, course: Course) -> Mapping[int, float]:
        """The losses of the step without edits, with what was learned."""
        try:
            return self.before.training.losses_with(course.values) if self.before.training is not None else {}
        except Exception:  # the order of the edits is not worth an error
            return {}

    def left(self, finding: Finding, offered: Alternative) -> tuple[float, float]:
        """How much of the loss is left after the training with an edit, in whole percent: of the loss of the step
        itself with what was learned, and of that with the edit, which may be another one. Infinite if not known."""
        target = max(finding.target, 0)
        key = _in_order([offered.edit])
        course = self.courses.get(key)
        if not isinstance(course, Course):
            return math.inf, math.inf
        original = self.originals[key].get(target, math.inf)
        before = self.before.losses[target] if target < len(self.before.losses) else math.nan
        rises = _rise(before, original), _rise(*_ends(course.losses[target]))
        left, own = (math.inf if _not_finite(each) else round(1.0 + each, 2) for each in rises)
        return left, own

    def _course(self, training: Training) -> Course | str | None:
        began = time.monotonic()
        try:
            return training.course(STEPS, self.seconds_left)
        except NotRepeatable as error:
            return str(error)
        except tf.errors.ResourceExhaustedError:
            return "there is not enough memory"
        except tf.errors.OpError:
            return None
        except Exception as fault:
            return f"{type(fault).__name__}: {fault}"
        finally:
            self.seconds -= time.monotonic() - began

    def tried(self, finding: Finding, edits: Sequence[Edit], *, with_others: bool = False) -> Tried | str | None:
        """The result of the edits for a finding, or the reason why they were not tried; `None` if the program does not
        run.
        """
        now = self.of(edits)
        if now is None or isinstance(now, str):
            return now
        if now.raised and max(finding.target, 0) >= len(now.losses):
            return _NO_LOSS  # without the edit it raises as well, and may have come less far
        reports = {each.name: each for each in now.diagnosis.variables}
        named = [reports[name] for name in finding.variables if name in reports]
        if not named and not now.raised and finding.cause == "tape_not_watching":
            return _OTHER_REQUEST
        norms = [
            VariableNorm(each.name, each.gradient.norm, each.written)
            for each in named
            if each.gradient is not None and each.gradient.norm > 0 and not _not_finite(each.gradient.norm)
        ]
        loss = (_loss(self.before, finding.target), _loss(now, finding.target))
        if loss[0] is not None and loss[1] is not None and not _is_same_loss(loss[0], loss[1]) and self.varies:
            loss = (None, loss[1])
        works = (
            len(named) == len(finding.variables)
            and self._arrives(finding, {each.name: each.status for each in named}, now.diagnosis)
            and loss[1] is not None
            and not any(_is_same(finding, each) for each in now.diagnosis.findings)
            and not self._harms(finding, now.diagnosis)
        )
        found = Tried(works, loss, tuple(norms), with_others, keeps=tuple(_kept(self.before, now)))
        return self._trained(found, finding, edits) if works else found

    def _trained(self, found: Tried, finding: Finding, edits: Sequence[Edit]) -> Tried:
        """A result of one step, with that of some steps of training."""
        course = self.course(edits)
        if course is None:
            return replace(found, works=False)
        if isinstance(course, str):
            return replace(found, not_trained=f"It was not trained: {course}.")
        target = max(finding.target, 0)
        if target not in course.losses:
            return replace(found, not_trained="It was not trained: its loss is not known.")
        if not any(course.moved.values()):
            return replace(found, not_trained="It was not trained: no update of a variable was seen.")
        without = None if self.noise else self.course(())
        curve = course.losses[target]
        other = without.losses.get(target, ()) if isinstance(without, Course) else ()
        # A program that raises trains nothing.
        rise = 0.0 if self.before.raised else _rise(*_ends(other))
        works = _trains(course, target, rise, [each.variable for each in found.gradient_norm])
        losses = map(_finite, (_ends(curve), _ends(other), curve, other))
        return replace(found, works=works, trained=Trained(STEPS, *losses))

    def reaches(self, finding: Finding, edits: Sequence[Edit]) -> bool:
        """Whether a path leads to a variable of the finding, however small its gradient is."""
        now = self.of(edits)
        return isinstance(now, StepOutcome) and any(
            each.status in ("zero", *_WELL) for each in now.diagnosis.variables if each.name in finding.variables
        )

    def _arrives(self, finding: Finding, statuses: Mapping[str, str], now: Diagnosis) -> bool:
        """Whether a gradient arrives at all variables of a finding, and is not zero at one of them at least."""
        before = {each.name: each.status for each in self.before.diagnosis.variables}
        # The bias of an attention key has no influence, whatever else is fixed.
        idle = {name for each in now.findings if each.cause in _NO_INFLUENCE for name in each.variables}
        # That of an attention's query is next to nothing until the keys differ; what is in front of a layer that starts
        # as zeros gets none in its first step.
        growing = {
            name
            for each in now.findings
            if each.cause in _GROWING and each.severity == "info"
            for name in each.variables
        }
        for name, status in statuses.items():
            well = {"connected"}
            if name in idle:
                well.update(("zero", "vanishing"))
            if name in growing:
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


def _trains(course: Course, target: int, of_others: float, names: Sequence[str]) -> bool:
    """Whether variables are trained: each has moved, the loss is not worse for it, and their gradients have not died
    before something was learned. Without the edit, the loss rises by the part `of_others`.

    The loss is compared with what it is at first with the same edit, which may scale it; and it may rise where it
    rises without the edit too, or is not finite. One of several losses may rise for another, and one that depends on
    random numbers that cannot be repeated by chance.
    """
    first, last = _ends(course.losses[target])
    if _not_finite(last) or not all(course.moved.get(name, math.inf) > _STILL for name in names):
        return False
    rise = _rise(first, last)
    is_clear = len(course.losses) == 1 and not course.varies and not _not_finite(of_others)
    if is_clear and rise > max(_WORSE, of_others):
        return False
    histories = [course.gradients[name] for name in names if name in course.gradients]
    is_dead = bool(histories) and all(max(each[-len(each) // 4 :]) <= _DEAD * max(each) for each in histories)
    return not is_dead or rise < min(0.0 if _not_finite(of_others) else of_others, 0.0) - _LEARNED


def _ends(curve: Sequence[float]) -> tuple[float, float]:
    """The first and the last value; NaN if there are none."""
    return (curve[0], curve[-1]) if curve else (math.nan, math.nan)


def _rise(first: float, last: float) -> float:
    """In parts of the first value."""
    return (last - first) / max(abs(first), 1e-12)


def _kept(before: StepOutcome, now: StepOutcome) -> Iterator[Kept]:
    """What an edit leaves as it was."""
    pairs = zip(before.losses, now.losses, strict=False)
    if len(before.losses) == len(now.losses) > 0 and all(_is_same_loss(*pair) for pair in pairs):
        yield "forward"
    if before.trace is None or now.trace is None:
        return
    layers = _shapes_of_layers(before.trace), _shapes_of_layers(now.trace)
    is_same = all(layers[0][name] == layers[1][name] for name in layers[0].keys() & layers[1].keys())
    if is_same and before.shapes is not None and before.shapes == now.shapes:
        yield "shape"
    if _variables(before.trace) == _variables(now.trace):
        yield "checkpoint"


def _is_same_loss(old: float, new: float) -> bool:
    return math.isclose(old, new, rel_tol=_ROUNDING, abs_tol=1e-8)


def _shapes_of_layers(trace: Trace) -> dict[str, set[tuple[int, ...] | None]]:
    """The shapes of the tensors that layers return, as far as the trace has them."""
    found: dict[str, set[tuple[int, ...] | None]] = {}
    scopes = [f"{layer.scope}/" for layer in trace.layers]
    for op in trace.ops:
        for edge in op.inputs:
            # What is written to a variable is no tensor of the op that writes it.
            if edge.op < 0 or edge.passes == "state" or trace.ops[edge.op].reads is not None:
                continue
            made = trace.ops[edge.op]
            for scope in scopes:
                if made.name.startswith(scope) and not op.name.startswith(scope):
                    found.setdefault(scope, set()).add(made.outputs[edge.output].shape)
    return found


def _variables(trace: Trace) -> set[tuple[str, tuple[int, ...], str]]:
    return {(each.name, each.shape, each.dtype) for each in trace.variables if not (each.computed or each.made)}


def _in_order(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    return tuple(sorted(edits, key=lambda each: (each.file, each.line)))


def _tried_alone(finding: Finding, trials: _Trials) -> Finding:
    """The finding with the edits that work on their own, the one that trains best first, and with those that cannot be
    tried."""
    if finding.severity == "info":
        return finding
    by_rest = functools.partial(trials.left, finding)
    working: list[Alternative] = []
    untried: list[tuple[Alternative, str]] = []
    for each in _offered(finding):
        outcome = trials.tried(finding, [each.edit])
        if isinstance(outcome, str):
            untried.append((each, outcome))
            continue
        alike = [replace(each, tried=outcome)] if outcome is not None and outcome.works else []
        for number, edit in enumerate(with_other_widths(each.edit) if trials.reaches(finding, [each.edit]) else ()):
            if alike and number >= NEAR:
                break
            outcome = trials.tried(finding, [edit])
            if isinstance(outcome, Tried) and outcome.works:
                alike.append(replace(each, edit=edit, tried=outcome))
        working += sorted(alike, key=by_rest)[:1]
    working.sort(key=by_rest)
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
        fix=with_code_of(first.edit if first is not None else None, finding.fix, CATALOGUE[finding.cause].quotes),
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


def _loss(seen: StepOutcome, target: int) -> float | None:
    place = max(target, 0)
    value = seen.losses[place] if place < len(seen.losses) else math.nan
    return None if _not_finite(value) else float(value)


def _finite(values: Iterable[float]) -> tuple[float | None, ...]:
    return tuple(None if _not_finite(each) else each for each in values)


def _not_finite(value: float) -> bool:
    return not math.isfinite(value)
