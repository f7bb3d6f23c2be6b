"""A clip that cuts the gradient in every step, or leaves almost nothing of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from statistics import median

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.over_time.updates import BY_THE_RATE, ClipSeen
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.updates import FAR, PROPORTIONAL, USUAL, Update, has_hardly_fallen, updates_of
from tb_gradflow.record.report import Finding, SourceReport
from tb_gradflow.record.schema import Optimizer

# Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks" (2013), trained well with
# limits from half to ten times the usual norm. A limit of a tenth of that norm is far below.
_SMALL_LIMIT = 0.1

# In a single step, a gradient may just be large.
_ALMOST_NOTHING = 1e-3

# After fewer recorded steps, it may be the beginning, where gradients are large.
_ENOUGH = 20


def findings_of_clips(measured: Measured, told: Collection[str]) -> Iterator[Finding]:
    """Not about variables of which another finding says why they do not move: `told` are their names."""
    for seen in measured.clips_seen:
        names = [measured.topology.trace.variables[each].name for each in seen.variables]
        is_known = seen.is_always_on and seen.factor <= _SMALL_LIMIT and not set(names) <= {*told}
        updates = [each for each in updates_of(measured) if each.variable in seen.variables]
        if not is_known or (finding := _finding(measured, seen, updates)) is None:
            continue
        yield finding


def _finding(measured: Measured, seen: ClipSeen, updates: Sequence[Update]) -> Finding | None:
    trace = measured.topology.trace
    optimizer = trace.optimizers[seen.optimizer]
    share = median(each.share for each in updates) if updates else 0.0
    starves = bool(updates) and share <= USUAL / FAR and _is_reason(measured, seen, optimizer, share)
    if not starves and seen.steps < _ENOUGH:
        return None
    line = None if seen.at is None else trace.sources[seen.at]
    target = next((each.target for each in trace.variable_gradients if each.variable == seen.variables[0]), -1)
    is_seen = seen.factor <= _ALMOST_NOTHING if measured.alone else has_hardly_fallen(measured, target)
    loud = starves and is_seen
    told, fix = _starved(seen, optimizer, share) if starves else _always(seen, optimizer)
    if (own := _own_norm(measured, seen)) < _SMALL_LIMIT * seen.before and seen.by == "tf.clip_by_global_norm":
        told = f"Of that norm, only {own:.1g} is that of the gradients that are applied. {told}"
        fix = "Clip only the gradients that are applied: what else is in the list counts in its norm."
    return Finding(
        cause=CAUSE.name,
        severity="warning" if loud else "info",
        variables=tuple(trace.variables[each].name for each in seen.variables),
        op=None,
        source=None if line is None else SourceReport(line.file, line.line, line.code),
        message=f"{_what(seen, optimizer)} {told}",
        fix=fix,
        target=target,
        culprit=-1,
        path=(),
    )


def _own_norm(measured: Measured, seen: ClipSeen) -> float:
    """The norm of the gradients of the variables that are updated, in this step."""
    entries = [each for each in measured.topology.trace.variable_gradients if each.variable in seen.variables]
    reports = [report for each in entries if (report := measured.of_variable(each)) is not None]
    return math.sqrt(sum(each.norm**2 for each in reports)) if reports else math.inf


def _is_reason(measured: Measured, seen: ClipSeen, optimizer: Optimizer, share: float) -> bool:
    """Whether the updates would be of a visible size without the clip."""
    if optimizer.type in PROPORTIONAL:
        return share / seen.factor > 10 * USUAL / FAR
    shapes = [measured.topology.trace.variables[each].shape for each in seen.variables]
    size = sum(math.prod(shape) for shape in shapes if min(shape, default=1) > 0)
    element = seen.before / math.sqrt(max(size, 1))
    epsilon = _epsilon(optimizer)
    return optimizer.type in BY_THE_RATE and element * seen.factor < epsilon < element


def _epsilon(optimizer: Optimizer) -> float:
    for option in optimizer.options:
        name, _, value = option.partition("=")
        if name == "epsilon":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 0.0


def _what(seen: ClipSeen, optimizer: Optimizer) -> str:
    by = f"`{seen.by}={seen.limit:g}` of {optimizer.type}" if seen.by[:3] != "tf." else f"`{seen.by}`"
    if seen.by[:3] == "tf." and seen.limit is not None:
        by += f" with a limit of {seen.limit:g}"
    steps = "in this step" if seen.steps == 1 else f"in all {seen.steps} recorded steps that were looked at"
    middle = "" if seen.steps == 1 else ", in the median"
    left = seen.before * seen.factor
    return f"{by} cuts the gradient {steps}, from a norm of {seen.before:.2g} to {left:.2g}{middle}."


def _starved(seen: ClipSeen, optimizer: Optimizer, share: float) -> tuple[str, str]:
    moves = f"A step changes a weight by {share:.1g} of its size; about {USUAL:g} is usual."
    if optimizer.type not in PROPORTIONAL:
        return (
            f"{moves} {optimizer.type} divides by the size of the gradient plus its epsilon, {_epsilon(optimizer):g}, "
            "and what is left of an element is smaller than that.",
            f"Raise the limit, to {_raised(seen, 1 / seen.factor)}: {_ONLY_ABOVE}",
        )
    without = share / seen.factor
    told = f"{moves} Updates of {optimizer.type} are in proportion to the gradient: without the clip it would be "
    rest = f"that gives steps of {USUAL:g}." if without > USUAL else _ONLY_ABOVE
    return f"{told}{without:.1g}.", f"Raise the limit, to {_raised(seen, min(USUAL / share, 1 / seen.factor))}: {rest}"


_ONLY_ABOVE = "it then cuts only what is above the usual size."


def _raised(seen: ClipSeen, by: float) -> str:
    """A limit that is so many times larger. Of one that is not known, that of the norm of all."""
    return f"{seen.before * min(1.0, by * seen.factor) if seen.limit is None else seen.limit * by:.1g}"


def _always(seen: ClipSeen, optimizer: Optimizer) -> tuple[str, str]:
    if optimizer.type in PROPORTIONAL:
        return (
            "So no step is longer than another, and the learning rate counts for "
            f"{seen.factor:.1g} of what it is without the clip.",
            "Nothing to fix if the loss falls. To cut only what is unusual, set the limit to the usual norm, "
            f"{seen.before:.1g}, and the learning rate to {seen.factor:.1g} of what it is.",
        )
    return (
        f"{optimizer.type} divides by the size of the gradient, so this hardly changes the length of its steps, but it "
        "makes the gradients of all steps count the same.",
        f"Nothing to fix if the loss falls. To cut only what is unusual, set the limit to the usual norm, "
        f"{seen.before:.1g}.",
    )


CAUSE = Cause(
    name="gradient_clipped",
    meaning="a clip (`clipnorm`, `global_clipnorm`, `clipvalue`, `tf.clip_by_*`) has cut the gradient in each of the "
    "last recorded steps, twenty at least, to a tenth of its norm or less in the median. A warning where it is why "
    "hardly anything moves: steps change weights by less than 1e-5 of their size and would change them by more than "
    "1e-4 without the clip (SGD), or what is left is smaller than the epsilon of Adam, and the loss has not fallen",
    severity="info, warning",
    fix="a limit of about the usual norm",
    plight="almost nothing of the gradient",
    without_op="a clip{line} cuts it",
    headline="A clip leaves almost nothing of the gradient.",
)
