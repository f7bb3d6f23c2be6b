"""A softmax whose entries are all masked, with minus infinity or with a number in which the scores are lost."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.not_finite import finite_mask
from tb_gradflow.analyse.evidence.gradient_sizes import is_the_only_way
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.broken import BROKEN
from tb_gradflow.analyse.words.fields import ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text

# The distance between two numbers of this size is one in float32: of a score of about one, nothing is left.
_SWALLOWS = -1e7


def masked_everywhere(suspect: Suspect) -> Verdict | None:
    """Every entry of every row is masked with a large number. The scores are rounded away, and the gradient that passes
    the softmax is not that of the loss, which does not depend on them."""
    topology, measured, target = suspect.topology, suspect.measured, suspect.target
    if target < 0:
        return None
    masked = measured.once(
        "masked everywhere",
        lambda: [
            op
            for kind in ("Softmax", "LogSoftmax")
            for op in topology.by_type.get(kind, ())
            if (ends := measured.range_of(op, 0)) is not None and ends[1] < _SWALLOWS
        ],
    )
    found = next((op for op in masked if is_the_only_way(suspect, op)), -1)
    return Verdict("softmax_all_masked", "warning", found) if found >= 0 else None


def message_and_fix(group: Group) -> Text:
    ends = group.suspect.measured.range_of(group.culprit, 0)
    if ends is not None and ends[1] < _SWALLOWS:
        start = ZERO
        if group.suspect.state.status != "zero":
            start = "{they_get} a gradient that is not that of the loss, since the scores are rounded away: "
        return Template(
            start
            + f"the mask in front of {{op}} excludes every entry. The largest is {ends[1]:.3g}, and each entry gets "
            "the same weight, whatever the scores are.",
            "Check which way round the mask is: a number such as `-1e9` belongs to the entries to leave out, "
            "`scores + (1.0 - mask) * -1e9` for a mask that is 1 where an entry counts.",
        )(group)
    return Template(
        BROKEN + "{op} is given a row in which every entry is masked.",
        "Mask with a large negative number, `-1e9`, instead of `-inf`.",
    )(group)


CAUSE = Cause(
    name="softmax_all_masked",
    meaning="the gradient becomes NaN at a softmax; or every entry that it is given is below -1e7, as a masked one is",
    severity="error; warning for a finite mask",
    fix="mask with a finite number; mask the entries to leave out",
    text=message_and_fix,
    edits=(finite_mask,),
)
