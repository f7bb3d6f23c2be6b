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
    """

    update: Update
    others: float
    reason: Reason
    here: float
    there: float

    @property
    def moves_more(self) -> bool:
        """Whether it moves more than the others, not less."""
        return self.update.share > self.others


def findings_of_updates(measured: Measured, told: Collection[str]) -> Iterator[Finding]:
    """Not about variables of which another finding says why they do not move, or what is wrong with their gradient:
    `told` are their names."""
    trace, groups = measured.topology.trace, dict[tuple[Reason, bool], list[Uneven]]()
    for each in _uneven(measured):
        if trace.variables[each.update.variable].name not in told:
            groups.setdefault((each.reason, each.moves_more), []).append(each)
    for group in groups.values():
        yield _finding(measured, group)


def _uneven(measured: Measured) -> Iterator[Uneven]:
    updates = [each for each in updates_of(measured) if each.steps >= _ENOUGH]
    if len(updates) < _FEWEST:
        return
    for each in updates:
        others = [other for other in updates if other is not each]
        usual = median(other.share for other in others)
        moves_less = each.share < min(usual, USUAL) / FAR
        if not moves_less and not each.share > max(usual, USUAL) * FAR:
            continue
        if moves_less and _is_sparse(measured, each.variable):
            continue
        if each.decay > _MOSTLY * each.share and not moves_less:
            yield Uneven(each, usual, "decay", each.decay, 0.0)
        elif (found := _reason(each, others, usual)) is not None:
            yield found


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
        fix=_fix(trace, first),
        target=target,
        culprit=-1,
        path=(),
    )


def _what(names: Sequence[str], group: Sequence[Uneven]) -> str:
    shares = sorted(each.update.share for each in group)
    one, steps = len(names) == 1, min(each.update.steps for each in group)
    by = f"{shares[0]:.1g}" if one else f"{shares[0]:.1g} to {shares[-1]:.1g}"
    times = group[0].update.share / group[0].others
    far = f"{times:,.0f} times as much as" if times > 1 else f"{1 / times:,.0f} times less than"
    return (
        f"{quoted(names)} {'changes' if one else 'change'} by {by} of {'its' if one else 'their'} size in a step, "
        f"{far} the other matrices, which change by {group[0].others:.1g}; about {USUAL:g} is usual. These are medians "
        f"of the last {steps} recorded steps."
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
            f"The reason is weight decay, which changes {'it' if one else 'them'} by {first.here:.1g} of "
            f"{'its' if one else 'their'} size in each step; the gradient does less."
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


def _fix(trace: Trace, first: Uneven) -> str:
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
    "explains it: its learning rate, its gradient, a clip, or weight decay. Not embeddings of which a batch contains "
    "few rows, nor weights that are just very small or large. A warning where the loss has not fallen, unless a lower "
    "learning rate is the reason, which may be meant",
    severity="info, warning",
    fix="the same learning rate; an optimizer that divides by the size of the gradient; `global_clipnorm`; less decay",
    headline="Some layers move a hundred times less, or more, than the others.",
)
