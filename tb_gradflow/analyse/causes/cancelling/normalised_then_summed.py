"""The loss sums values that were normalised to a constant sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tb_gradflow.analyse.causes.cancelling.sums import SCORING_STEPS, SUM_NOISE
from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import SAME_ELEMENTS, shape_along
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.words.fields import SIZE, Template
from tb_gradflow.analyse.words.names import Group, Text, called

# A gradient that is larger than this is not noise.
_FAINT = 1e-5

_EXTREMES = {"Max": "largest", "Min": "smallest"}

_TOTALS = frozenset({"Sum", "Mean", "SegmentSum", "UnsortedSegmentSum", "SegmentSumV2", "SegmentMean"})


def rule(suspect: Suspect) -> Verdict | None:
    """The loss sums the output of a softmax, which sums to one: every element gets the same gradient, and they
    cancel."""
    state, topology = suspect.state, suspect.topology
    if state.gradient is None:
        return None
    even = suspect.measured.once(("evenly met", suspect.target), lambda: _evenly_met(suspect))
    size, op = max((even[reader] for reader in topology.readers[state.variable]), default=(0.0, -1))
    return (
        Verdict("normalised_then_summed", "error", op) if size and state.gradient.max_abs <= SUM_NOISE * size else None
    )


def tied(suspect: Suspect) -> Verdict | None:
    """All outputs of a softmax are equal, and the loss takes the largest or the smallest of them: TensorFlow gives each
    the same share of the gradient, as of a sum. An error if it is zero in every digit; rounding breaks a tie."""
    state, topology = suspect.state, suspect.topology
    if state.gradient is None:
        return None
    for op, size in suspect.measured.once(("tied", suspect.target), lambda: list(_tied(suspect))):
        if state.gradient.max_abs <= SUM_NOISE * size and not topology.made_by(op).isdisjoint(
            topology.readers[state.variable]
        ):
            return Verdict("normalised_then_summed", "warning" if state.gradient.max_abs else "error", op)
    return None


def _tied(suspect: Suspect) -> Iterator[tuple[int, float]]:
    """The softmaxes whose outputs all get a gradient from an extreme, and how large it is. One that is larger than the
    others would get all of it."""
    topology = suspect.topology
    for op in topology.by_type.get("Softmax", ()):
        report = suspect.measured.of_op(suspect.target, op)
        if report is not None and report.max_abs and not report.zero_fraction and _extreme_of(topology, op) >= 0:
            yield op, report.max_abs


def _extreme_of(topology: Topology, softmax: int) -> int:
    """The op that takes the largest or the smallest of the outputs of a softmax, and all that does; otherwise -1."""
    reached = topology.ahead(topology.onward(softmax), SAME_ELEMENTS)
    ends = [op for op in reached if topology.trace.ops[op].type not in SAME_ELEMENTS]
    return ends[0] if len(ends) == 1 and topology.trace.ops[ends[0]].type in _EXTREMES else -1


def normalised_by_hand(suspect: Suspect) -> Verdict | None:
    """A value is divided by its own sum, or its own mean is subtracted, and every element of the result gets the same
    gradient: the gradients of the two paths cancel."""
    state, topology = suspect.state, suspect.topology
    if state.gradient is None or not 0 < state.gradient.max_abs <= _FAINT or _is_lost_later(suspect):
        return None
    places = suspect.measured.once(("normalised", suspect.target), lambda: _normalised_in_vain(suspect))
    for place, join in places:
        if not (topology.made_by(place) | {place}).isdisjoint(topology.readers[state.variable]):
            return Verdict("normalised_then_summed", "error", join)
    return None


def _is_lost_later(suspect: Suspect) -> bool:
    """Whether a gradient of normal size arrives where the variable is used: it is lost there, and nowhere before."""
    users = (
        user for reader in suspect.topology.readers[suspect.state.variable] for user in suspect.topology.onward(reader)
    )
    arriving = (suspect.measured.of_op(suspect.target, user) for user in users)
    return any(report is not None and report.max_abs > _FAINT for report in arriving)


def _normalised_in_vain(suspect: Suspect) -> list[tuple[int, int]]:
    """The ops whose value is normalised and whose gradients cancel, and the op that computes the normalised value."""
    found = []
    for op in range(len(suspect.topology.trace.ops)):
        users = suspect.topology.onward(op)
        after = suspect.measured.of_op(suspect.target, op) if len(users) > 1 else None
        if after is not None and _two_cancel(suspect, after.max_abs, users):
            join = _normaliser_of(suspect, op, users)
            found.extend([(op, join)] if join >= 0 else [])
    return found


def _two_cancel(suspect: Suspect, size: float, users: Sequence[int]) -> bool:
    sizes = sorted(report.max_abs for op in users if (report := suspect.measured.of_op(suspect.target, op)) is not None)
    return len(sizes) > 1 and size <= SUM_NOISE * sizes[-2]


def _normaliser_of(suspect: Suspect, op: int, users: Sequence[int]) -> int:
    """The op that combines a value with its own sum or mean; -1 if there is none."""
    topology = suspect.topology
    beside = {op, *users}
    for total in (user for user in users if suspect.type_of(user) in _TOTALS):
        way = topology.gradient(suspect.target).from_op(total)[1:SCORING_STEPS]
        for before, place in pairwise((total, *way)):
            others = {edge.op for edge in topology.trace.ops[place].inputs} - {before}
            if others & (beside - {total}):
                return place
    return -1


def _evenly_met(suspect: Suspect) -> list[tuple[float, int]]:
    """For each op, of the softmaxes that its value flows into and at which the same gradient arrives for every
    element, the one where that is largest, and how large it is there."""
    topology, measured = suspect.topology, suspect.measured
    found = [(0.0, -1)] * len(topology.trace.ops)
    for op in topology.by_type.get("Softmax", ()):
        report = measured.of_op(suspect.target, op)
        is_even = report is not None and report.zero_fraction == 0 and report.mean_abs >= report.max_abs * (1 - 1e-5)
        is_even = is_even or _is_summed_in_rows(topology, op, suspect.target)
        if report is not None and is_even and not _lets_through(suspect, op, report.max_abs):
            found[op] = (report.max_abs, op)
    for size, op in sorted((each for each in found if each[0]), reverse=True):
        stack = [op]
        while stack:
            for source in topology.sources(stack.pop()):
                if found[source] < (size, op):
                    found[source] = (size, op)
                    stack.append(source)
    return found


def _is_summed_in_rows(topology: Topology, softmax: int, target: int) -> bool:
    """Whether the loss reads the outputs of a softmax only in sums over the whole last axis, in which each row may have
    one factor: then every element of a row gets the same gradient."""
    ops, influence = topology.trace.ops, topology.influence(target).hops
    shape = ops[softmax].outputs[0].shape
    stack = [softmax]
    while stack:
        before = stack.pop()
        for op in topology.onward(before):
            if influence[op] < 0:
                continue
            made = ops[op].outputs[0].shape if ops[op].outputs else None
            if ops[op].type in ("Sum", "Mean") and shape and made in ((), shape[:-1], (*shape[:-1], 1)):
                continue
            others = [shape_along(topology.trace, edge) for edge in ops[op].inputs if edge.op not in (before, -1)]
            factors = [*others, *(given.shape for given in ops[op].given)]
            is_factor = ops[op].type == "Mul" and all(each == () or (each and each[-1] == 1) for each in factors)
            if made != shape or not (ops[op].type in ("Neg", "Identity") or is_factor):
                return False
            stack.append(op)
    return True


def _lets_through(suspect: Suspect, softmax: int, size: float) -> bool:
    """Whether a gradient is measured behind a softmax: what arrives there differs in its signs, as behind an absolute
    error."""
    behind = (suspect.measured.of_op(suspect.target, source) for source in suspect.topology.sources(softmax))
    return any(report is not None and report.max_abs > SUM_NOISE * size for report in behind)


def message_and_fix(group: Group) -> Text:
    extreme = _extreme_of(group.suspect.topology, group.culprit) if group.culprit >= 0 else -1
    if group.op is not None and group.op.type == "Softmax" and extreme >= 0:
        which = _EXTREMES[group.trace.ops[extreme].type]
        return Template(
            SIZE + f"in this step all outputs of {{op}} are equal, and {called(group.trace, extreme)} takes the "
            f"{which}. TensorFlow gives equal ones the same share of the gradient, which the softmax cancels.",
            "Let its inputs differ from the beginning: a random initialiser in the layer before it, instead of zeros.",
        )(group)
    if group.op is not None and group.op.type in ("Softmax", "LogSoftmax"):
        return Template(
            SIZE + "the loss sums the output of {op}, which sums to one, so it is constant.",
            "Compare with targets: `keras.losses.categorical_crossentropy(y, probabilities)`.",
        )(group)
    return Template(
        SIZE + "all outputs of {op} get the same gradient, as from a sum or a mean along the normalised axis: such a "
        "sum does not depend on the input.",
        "Sum or average along an axis other than the normalised one, or weight the normalised values differently.",
    )(group)


CAUSE = Cause(
    name="normalised_then_summed",
    meaning="the same gradient arrives at all outputs of a softmax, or of a hand-written normalisation, and at most "
    "rounding noise is passed on; also from the largest or the smallest of outputs that are all equal",
    severity="error; warning for equal outputs that rounding may tell apart",
    fix="compare with targets",
    text=message_and_fix,
    leaves_noise=True,
)
