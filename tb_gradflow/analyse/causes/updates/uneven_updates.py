"""A layer that moves a hundred times less, or more, than the others and than is usual."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.updates import FAR, USUAL, Part, Update, has_hardly_fallen, updates_of
from tb_gradflow.analyse.words.names import quoted
from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import Trace

# The beginning is often different.
_ENOUGH = 8

# The others are two at least.
_FEWEST = 3

# A reason is far from that of the others by this factor at least, and explains half of the difference.
_TELLING = 10.0

# A rate that is meant to be a hundred times higher may be changed a little by a schedule.
_SOME = 2.0

# If this part of a step is weight decay, that is what moves the weights.
_MOSTLY = 0.5

# In an embedding, a step moves the rows that its batch contains.
_SPARSE = 0.5

Reason = Literal["rate", "gradient", "clip", "decay"]


@dataclass(frozen=True, slots=True)
class Uneven:
    """A matrix that is updated in another way than the others.

    Attributes:
        update: How.
        others: By which part of their size these change, in the median.
        reason: Why, as measured.
        here: What the reason is for it.
        there: What it is for the others, in the median; of decay, nothing.
        further: How many times as far as an element of the others one of this moves, if that is what is known: its
            weights have grown, so that this is a usual part of them. Otherwise 0.
    """

    update: Update
    others: float
    reason: Reason
    here: float
    there: float
    further: float = 0.0

    @property
    def moves_more(self) -> bool:
        """Whether it moves more than the others, not less."""
        return self.further > 0 or self.update.share > self.others


def findings_of_updates(measured: Measured, told: Collection[str]) -> Iterator[Finding]:
    """Not about variables of which another finding says why they do not move, or what is wrong with their gradient:
    `told` are their names."""
    trace, groups = measured.topology.trace, dict[tuple[Reason, bool], list[Uneven]]()
    for each in _uneven(measured):
        if trace.variables[each.update.variable].name not in told:
            groups.setdefault((each.reason, each.moves_more or each.reason == "decay"), []).append(each)
    for group in groups.values():
        yield _finding(measured, group)


def _uneven(measured: Measured) -> Iterator[Uneven]:
    updates = [each for each in updates_of(measured) if each.steps >= _ENOUGH]
    for each in updates:
        others = [other for other in updates if other is not each]
        usual = median(other.share for other in others) if others else USUAL
        if each.decay > USUAL * FAR and each.decay > _MOSTLY * each.share:
            yield Uneven(each, usual, "decay", each.decay, 0.0)
        elif len(updates) < _FEWEST:
            continue
        elif (found := _of(measured, each, others, usual)) is not None:
            yield found


def _of(measured: Measured, update: Update, others: Sequence[Update], usual: float) -> Uneven | None:
    if update.share < min(usual, USUAL) / FAR:
        return None if _is_sparse(measured, update.variable) else _reason(update, others, usual)
    found = _reason(update, others, usual) if update.share > max(usual, USUAL) * FAR else None
    return found or _outgrown(update, others, usual)


def _outgrown(update: Update, others: Sequence[Update], usual: float) -> Uneven | None:
    """A matrix whose learning rate is so high that its weights have grown, so that a step changes a usual part of
    them."""
    move, size = (median(numbers) for numbers in zip(*((each.move, each.size) for each in others), strict=True))
    rate = median(each.rate for each in others)
    is_far = update.move > FAR / _SOME * move and update.move > USUAL * FAR * size
    if not is_far or update.rate < FAR / _SOME * rate:
        return None
    return Uneven(update, usual, "rate", update.rate, rate, update.move / move)


def _reason(update: Update, others: Sequence[Update], usual: float) -> Uneven | None:
    """The part of the step's length that differs most; `None` if it does not explain the difference, or if it is the
    size of the weights: small ones are often those of a branch that begins as nothing, and large ones may be right."""
    apart = math.log10(update.share / usual)
    found: dict[Part, float] = {}
    for part, here in update.parts.items():
        there = [other.parts[part] for other in others if part in other.parts]
        if there and here > 0:
            found[part] = math.log10(here / median(there))
    most = max(found, key=lambda part: found[part] * math.copysign(1.0, apart), default=None)
    if most is None or most == "weights":
        return None
    explained = found[most] * math.copysign(1.0, apart)
    if explained < math.log10(_TELLING) or explained < abs(apart) / 2:
        return None
    here = update.parts[most]
    return Uneven(update, usual, most, here, here / 10 ** found[most])


def _is_sparse(measured: Measured, variable: int) -> bool:
    gradients = map(measured.of_variable, measured.topology.entries_of(variable))
    return any(each is not None and each.zero_fraction > _SPARSE for each in gradients)


def _finding(measured: Measured, group: Sequence[Uneven]) -> Finding:
    trace, first = measured.topology.trace, group[0]
    names = [trace.variables[each.update.variable].name for each in group]
    target = next((each.target for each in trace.variable_gradients if each.variable == first.update.variable), -1)
    is_meant = first.reason == "rate" and not first.moves_more
    return Finding(
        cause=CAUSE.name,
        severity="warning" if has_hardly_fallen(measured, target) and not is_meant else "info",
        variables=tuple(names),
        op=None,
        source=None,
        message=f"{_what(names, group)} {_why(trace, group)}",
        fix=_fix(first),
        target=target,
        culprit=-1,
        path=(),
    )


def _what(names: Sequence[str], group: Sequence[Uneven]) -> str:
    first, one, steps = group[0], len(group) == 1, min(each.update.steps for each in group)
    shares = sorted(each.update.share for each in group)
    verb, their = ("changes", "its") if one else ("change", "their")
    by = f"{shares[0]:.1g}" if one else f"{shares[0]:.1g} to {shares[-1]:.1g}"
    times = first.update.share / first.others
    far = f"{times:,.0f} times as much as" if times > 1 else f"{1 / times:,.0f} times less than"
    if first.reason == "decay":
        compared = ""
    elif first.further:
        compared = (
            f", and an element moves {first.further:,.0f} times as far as in the other matrices: the weights have "
        )
        compared += f"grown to {first.update.size:.1g}"
    else:
        compared = f", {far} the other matrices, which change by {first.others:.1g}"
    return (
        f"{quoted(names)} {verb} by {by} of {their} size in a step{compared}; about {USUAL:g} is usual. These are "
        f"medians of the last {steps} recorded steps."
    )


def _why(trace: Trace, group: Sequence[Uneven]) -> str:
    first = group[0]
    optimizer = trace.optimizers[first.update.optimizer].type
    one = len(group) == 1
    if first.reason == "rate":
        return (
            f"The reason is the learning rate: {optimizer} applies {first.here:.2g} to {'it' if one else 'them'}, and "
            f"the others get {first.there:.2g}."
        )
    if first.reason == "decay":
        return (
            f"The reason is weight decay, which takes {first.here:.1g} of {'it' if one else 'them'} away in each step: "
            "what the gradient adds is gone after a few."
        )
    if first.reason == "clip":
        return (
            f"The reason is a clip: it leaves {first.here:.1g} of {'its' if one else 'their'} gradient, and "
            f"{first.there:.1g} of the others'."
        )
    return (
        f"The reason is the gradient, to which updates of {optimizer} are in proportion: an element of it is "
        f"{first.here:.1g}, and {first.there:.1g} in the others."
    )


def _fix(first: Uneven) -> str:
    if first.reason == "rate":
        if not first.moves_more:
            return (
                "Nothing to fix if it is to learn more slowly, as a pretrained layer does. Otherwise give it the "
                "learning rate of the others."
            )
        return f"Give it the learning rate of the others, {first.there:.2g}."
    if first.reason == "decay":
        return "Lower `weight_decay`, to 0.004 for example, or call `optimizer.exclude_from_weight_decay` for it."
    if first.reason == "clip":
        return (
            "Raise the limit; or clip by the norm of all gradients, `global_clipnorm`, which keeps their proportions."
        )
    scale = "smaller" if first.moves_more else "larger"
    return (
        "Use an optimizer that divides by the size of the gradient, such as Adam; or scale what is computed from it, "
        f"so that its gradient is {scale}."
    )


CAUSE = Cause(
    name="uneven_updates",
    meaning="the last recorded steps, eight at least, change a matrix by a part of its size that is a hundred times "
    "less, or more, than that of the other matrices and than is usual (about 0.001), and one measured quantity "
    "explains it: its learning rate, its gradient, or a clip. Or weight decay takes a tenth of it away in a step. Not "
    "embeddings of which a batch contains few rows, nor weights that are just very small or large. A warning where the "
    "loss has not fallen, unless a lower learning rate is the reason, which may be meant",
    severity="info, warning",
    fix="the same learning rate; an optimizer that divides by the size of the gradient; `global_clipnorm`; less decay",
    plight="updates of another size than the others",
    headline="Some layers move a hundred times less, or more, than the others.",
)
