"""A value is only counted."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.positions import probability_of_the_label, soft_count
from tb_gradflow.analyse.edits.score_function import weighted_with_probability
from tb_gradflow.analyse.edits.soft import soft_comparison
from tb_gradflow.analyse.evidence.discrete import COMPARISON, COUNTING, COUNTING_CALLS, is_compared_again
from tb_gradflow.analyse.evidence.suspects import Discrete, Suspect, Use, Verdict, discrete_part
from tb_gradflow.analyse.graph.op_sets import LESS
from tb_gradflow.analyse.user_code.cut_again import is_cut_again
from tb_gradflow.analyse.words.fields import SIZE, fields, filled
from tb_gradflow.analyse.words.names import Group, Text, api_of, call_of
from tb_gradflow.analyse.words.soft import soft_step

_REDUCTIONS = frozenset({"Sum", "Mean", "Max", "Min", "Prod", "SegmentSum", "UnsortedSegmentSum"})


def rule(suspect: Suspect) -> Verdict | None:
    """Something is counted: a histogram, or a comparison whose ones and zeros are only summed. The sum of a
    `tf.sequence_mask` is a length, and there the mask is what has no derivative."""
    called = suspect.op.api or ""
    if suspect.op.type in COUNTING or any(word in called for word in COUNTING_CALLS):
        return Verdict("nondiff_counting", "error")
    part = discrete_part(suspect)
    counted = part.uses and all(_is_counted(suspect, part, use) for use in part.uses)
    return Verdict("nondiff_counting", "error") if counted else None


def _is_counted(suspect: Suspect, part: Discrete, use: Use) -> bool:
    """Whether a part that compares goes on as a number of what is true: its booleans are cast and then summed, or
    summed as integers and then cast."""
    topology = suspect.topology
    influence = topology.influence(suspect.target).hops
    if suspect.type_of(use.consumer) != "Cast":
        return False
    via = use.via
    while suspect.type_of(via) == "Cast" and via != suspect.culprit:  # from one size of integers to another
        via = topology.trace.ops[via].inputs[0].op
    if suspect.type_of(via) in _REDUCTIONS:
        return any(suspect.type_of(op) in COMPARISON for op in part.ops)
    users = [user for user, _ in topology.consumers[use.consumer] if influence[user] >= 0]
    return (
        suspect.type_of(use.via) in COMPARISON
        and not (topology.trace.ops[use.via].api or "").endswith("sequence_mask")
        and bool(users)
        and all(suspect.type_of(user) in _REDUCTIONS for user in users)
    )


def message_and_fix(group: Group) -> Text:
    kind = group.op.type if group.op else ""
    counts = kind in COUNTING or any(word in api_of(group) for word in COUNTING_CALLS)
    into = "the positions of the largest" if kind == "ArgMax" else "the positions of the smallest"
    into = f"{into}, which are compared and" if kind in ("ArgMax", "ArgMin") else "booleans, which are then"
    why = "{op} counts" if counts else f"{{op}} turns {{them}} into {into} counted"
    soft = _SOFT_YES if api_of(group).endswith("sequence_mask") else _soft_histogram(group)
    fix = next((fix for kinds, fix in _COUNTED if kind in kinds), soft)
    if fix == _SOFT_YES and is_compared_again(group.suspect):
        fix = _ON_PROBABILITIES
    if (
        kind in ("Equal", "NotEqual")
        and not counts
        and all(is_cut_again(group, each.edit) for each in soft_count(group))
    ):
        fix = _SMOOTH
    names = fields(group) | {"step": soft_step(group)}
    names["logits"] = "" if names["behind"] == "Softmax" else ", from_logits=True"
    message = SIZE + why + ", and a count is a step function: it has no derivative."
    return Text(filled(message, names), filled(fix, names))


def _soft_histogram(group: Group) -> str:
    """A bell curve around the middle of each bin; the bins are those of the user's call if it shows them."""
    call = call_of(group)
    span = (call.argument(1, "value_range") if call else None) or ""
    bins = (call.argument(2, "nbins") if call else None) or "100"
    ends = span.strip("[]()").split(",") if span.count(",") == 1 else ["low", "high"]
    centres = f"tf.linspace({ends[0].strip()}, {ends[1].strip()}, {bins})"
    return (
        f"Use a soft histogram: `centres = {centres}`, `width = centres[1] - centres[0]`, then "
        "`tf.reduce_sum(tf.exp(-tf.square((tf.reshape({x}, [-1, 1]) - centres) / width)), 0)`."
    )


_SOFT_YES = "Use a soft count: `{step}` instead of each comparison."

_ON_PROBABILITIES = "Train on `keras.losses.binary_crossentropy(y, {x})` and count in a metric."

_SMOOTH = "Train on a loss without steps, such as a squared error, and count in a metric."

_COUNTED = (
    (
        ("ArgMax", "ArgMin"),
        "Train on `keras.losses.sparse_categorical_crossentropy(y, {x}{logits})` and count in a metric.",
    ),
    (("Round",), _ON_PROBABILITIES),
    (("Equal", "NotEqual"), "Use a soft count: `tf.reduce_sum(1 - tf.exp(-tf.square({bx} / 0.1)))`."),
    ((*LESS, "Greater", "GreaterEqual"), _SOFT_YES),
)


CAUSE = Cause(
    name="nondiff_counting",
    meaning="histograms and `count_nonzero`; or a comparison whose result is only summed (an error rate)",
    severity="error",
    fix="a smooth loss, the count as a metric",
    text=message_and_fix,
    verb="blocks it",
    edits=(
        probability_of_the_label,
        soft_count,
        soft_comparison,
        weighted_with_probability,
    ),
    quotes=(
        "Use a soft count: ",
        "Use a soft histogram: ",
    ),
)
