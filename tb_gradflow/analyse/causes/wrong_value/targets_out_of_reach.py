"""Targets that the last activation of a model cannot give, or that its loss is not made for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.settings import without_activation
from tb_gradflow.analyse.evidence.gradient_sizes import SINGLE_DECADES, steepest
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.comparisons import DIFFERENCES, is_averaged, is_scaled_as_a_whole
from tb_gradflow.analyse.graph.op_sets import CLIPS, SOFTMAX_LOSS
from tb_gradflow.analyse.graph.probabilities import LOGITS, SIGMOID_LOSS, is_binary
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.words.fields import ZERO, fields, filled
from tb_gradflow.analyse.words.names import Group, Text, call_of, layer_of
from tb_gradflow.record.schema import ValueRange

_BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "Sigmoid": (0.0, 1.0),
        "Softmax": (0.0, 1.0),
        "Tanh": (-1.0, 1.0),
        "Softsign": (-1.0, 1.0),
        "Relu": (0.0, inf),
        "Relu6": (0.0, 6.0),
        "Softplus": (0.0, inf),
        "Elu": (-1.0, inf),
    }
)
"""Between which values the results of a function are."""

_SAME = frozenset({"Identity", "Reshape", "Squeeze", "ExpandDims", "Cast", "StridedSlice", "Transpose"})

_MOST_BEYOND = 0.4, 0.5
"""Noise around a limit, and the tail of a distribution, are beyond it: only targets that are, by more than the first
part of the range of all, and by more than the second of what lies between the limits."""

_LEAST_OF_VARIANCE = 0.05
"""Where it is known what of the variance of the targets is beyond the limits, more than this part: 15 % for a tanh and
a normal distribution of deviation 1, but 2 % for a sigmoid and classes with noise of deviation 0.1."""

_LEAST_OF_WIDTH = 0.25
"""And one of them is so far beyond: by more than this part of what lies between the limits, or of the range of the
targets of all recorded steps. In a batch of one row, or of one class, noise is all of their variance."""

_ROUNDING = 1e-3

_NONE = 0.0, 0.0
"""The range of one-hot vectors that name no class."""

_POISSON = "/poisson/"

_PERCENT = "/mean_absolute_percentage_error/", "/mape/"


@dataclass(frozen=True, slots=True)
class _Mismatch:
    """Targets that do not fit.

    Attributes:
        op: The op that compares them with what the model returns.
        place: Which of its inputs they are.
        made: The activation that cannot reach them; that op if the loss is not made for them.
        targets: Their range.
        limits: That of what the activation returns, or of what the loss expects.
        beyond: What of the variance of the targets is beyond the limits, if it was measured.
    """

    op: int
    place: int
    made: int
    targets: tuple[float, float]
    limits: tuple[float, float]
    beyond: float | None = None


def rule(suspect: Suspect) -> Verdict | None:
    """The targets of this step go beyond what a sigmoid, a tanh or a ReLU in front of a squared or absolute error can
    give; or beyond 0 and 1 in a binary cross-entropy, which then has no minimum; or are no probabilities in one of
    several classes, or name none of them."""
    if suspect.target < 0:
        return None
    is_learned = suspect.measured.is_learned(suspect.target)
    for each in _mismatches(suspect):
        # Without a class, the loss is zero from the beginning, and nothing was learned.
        if (each.targets == _NONE or not is_learned) and suspect.leads_to(each.op):
            return Verdict("targets_out_of_reach", "warning", each.made, facts=each)
    return None


def flat_by_then(suspect: Suspect) -> Verdict | None:
    """The last activation is flat in this step, and the gradient zero, or almost: the way to such targets leads
    there."""
    place = suspect.culprit
    if place < 0:
        most, place = steepest(suspect)
        if most < SINGLE_DECADES:
            return None
    if suspect.target < 0 or suspect.measured.is_learned(suspect.target):
        return None
    for each in _mismatches(suspect):
        if place in _compared(suspect.measured, each):
            return Verdict("targets_out_of_reach", "warning", each.made, facts=each)
    return None


def _compared(measured: Measured, mismatch: _Mismatch) -> Iterator[int]:
    """The last activation in front of a comparison, and the clips of a cross-entropy behind it."""
    ops = measured.topology.trace.ops
    op, place = mismatch.op, mismatch.place
    while True:
        op = next((edge.op for edge in ops[op].inputs if edge.input != place and edge.op >= 0), -1)
        place = -1
        if op < 0 or ops[op].reads is not None:
            return
        if ops[op].type in CLIPS or ops[op].type in _BOUNDS:
            yield op
        if ops[op].type not in _SAME | CLIPS | _BEFORE_LOGS:
            return


_BEFORE_LOGS = frozenset({"Log", "Log1p", "Neg", "Sub", "AddV2"})
"""What a cross-entropy does with probabilities."""


def _mismatches(suspect: Suspect) -> list[_Mismatch]:
    measured, target = suspect.measured, suspect.target
    return measured.once(("out of reach", target), lambda: list(_out_of_reach(measured, target)))


def _out_of_reach(measured: Measured, target: int) -> Iterator[_Mismatch]:
    topology = measured.topology
    way = topology.gradient(target)
    for each in topology.trace.ranges:
        op = topology.trace.ops[each.op]
        targets = measured.range_of(each.op, each.input)
        if targets is None or way.hops[each.op] < 0 or op.type not in (*DIFFERENCES, "Mul", SOFTMAX_LOSS):
            continue
        if any(scope in f"/{op.name}" for scope in _PERCENT):
            if op.type in DIFFERENCES and 0.0 in targets and targets != (0.0, 0.0):
                yield _Mismatch(each.op, each.input, each.op, targets, (-inf, inf))
            continue
        # Weights of rows may leave out those whose targets only say that there is none.
        if not (is_averaged(topology, each.op, target) and is_scaled_as_a_whole(topology, way.from_op(each.op))):
            continue
        if op.type == SOFTMAX_LOSS:
            # A policy gradient weights one-hot vectors with advantages of any size, but leaves their zeros.
            if targets == _NONE or (targets[0] > _ROUNDING and targets[1] > 1 + _ROUNDING):
                yield _Mismatch(each.op, each.input, each.op, targets, (0.0, 1.0))
        elif op.type == "Mul" and _POISSON in f"/{op.name}":
            if targets[0] < -_ROUNDING:
                yield _Mismatch(each.op, each.input, each.op, targets, (0.0, inf))
        elif op.type == "Mul":
            of_labels = is_binary(topology, each.op) and (SIGMOID_LOSS not in op.name or each.input != LOGITS)
            if of_labels and max(-targets[0], targets[1] - 1) > _ROUNDING:
                yield _Mismatch(each.op, each.input, each.op, targets, (0.0, 1.0))
        else:
            made = topology.origin(next((edge.op for edge in op.inputs if edge.input != each.input), -1), _SAME)
            limits = _BOUNDS.get(topology.trace.ops[made].type) if made >= 0 else None
            if limits is None:
                continue
            beyond = measured.beyond(each, limits)
            # Where all are one number, and nothing limits them above: the results of a model begin at about one.
            width = limits[1] - limits[0] if limits[1] < inf else _spread(measured, each) or 1.0
            if _is_beyond(targets, limits, beyond, width):
                yield _Mismatch(each.op, each.input, made, targets, limits, beyond)


def _spread(measured: Measured, labels: ValueRange) -> float:
    """The range of the targets of the recorded steps: a batch may have a single row."""
    course = measured.value_courses.get((labels.op, labels.input), ())
    ends = [
        *(measured.range_of(labels.op, labels.input) or ()),
        *(end for each in course for end in (each.smallest, each.largest)),
    ]
    return max(ends, default=0.0) - min(ends, default=0.0)


def _is_beyond(targets: tuple[float, float], limits: tuple[float, float], part: float | None, width: float) -> bool:
    beyond = max(limits[0] - targets[0], targets[1] - limits[1])
    if part is not None:
        return beyond > _LEAST_OF_WIDTH * width and part > _LEAST_OF_VARIANCE
    # Older logs have the range alone.
    between = limits[1] - limits[0] if limits[1] < inf else 0.0
    parts = _MOST_BEYOND[0] * (targets[1] - targets[0]), _MOST_BEYOND[1] * between
    return beyond > max(*parts, _ROUNDING)


def message_and_fix(group: Group) -> Text:
    found: _Mismatch = group.verdict.facts
    low, high = found.targets
    names = {**fields(group), "targets": f"from {low:.4g} to {high:.4g}" if low < high else f"up to {low:.4g}"}
    is_flat = group.suspect.state.status in ("zero", "vanishing")

    def said(what: str, why: str) -> str:
        start = ZERO + "the last activation is flat, and the targets do not fit; "
        if not is_flat:
            start = f"{{they_get}} {what}: "
        return filled(start + why, names)

    if group.op is not None and group.op.type == SOFTMAX_LOSS and found.targets == _NONE:
        return Text(
            said(
                "a gradient that means nothing",
                "a cross-entropy of several classes expects a one-hot vector in each row, and all targets of this step "
                "are zero. The loss is zero whatever the model predicts.",
            ),
            "Find out where the classes were lost: look at `y` as the model gets it. One-hot vectors of integer labels "
            "have as many columns as there are classes, `keras.utils.to_categorical(labels, classes)`, and labels "
            "count from zero.",
        )
    if group.op is not None and group.op.type == SOFTMAX_LOSS:
        return Text(
            said(
                "a gradient towards what the targets do not mean",
                "a cross-entropy of several classes expects probabilities that add up to one in each row, and the "
                "targets of this step go {targets}.",
            ),
            "If they are classes, make each of them a one-hot vector, `keras.utils.to_categorical(y)`, or use "
            "`sparse_categorical_crossentropy`; if they are numbers to predict, use a last layer without an "
            "activation, and `mse`.",
        )
    if found.limits == (-inf, inf):
        return Text(
            said(
                "a gradient of some rows alone",
                "a percentage error divides by the target, the targets of this step go {targets}, and instead of zero "
                "it divides by 1e-7. Rows with a target of zero count millions of times as much as the others.",
            ),
            'For numbers that may be zero, use `loss="mae"`; for labels of 0 and 1, `loss="binary_crossentropy"`.',
        )
    if found.made == found.op and found.limits[1] == inf:
        return Text(
            said(
                "a gradient that leads nowhere",
                "the loss of a Poisson distribution expects counts, and the targets of this step go {targets}. For a "
                "negative target it falls without end as the prediction goes to zero.",
            ),
            "Use `mse` for numbers of both signs, and a last layer without an activation.",
        )
    if found.made == found.op:
        return Text(
            said(
                "a gradient that leads nowhere",
                "a binary cross-entropy expects targets between 0 and 1, and the targets of this step go {targets}. "
                "For targets outside, the loss has no minimum: it falls without end as the logits grow.",
            ),
            f"Bring the targets to between 0 and 1{_mapped(low, high)}.",
        )
    least, most = found.limits
    only = f"between {least:g} and {most:g}" if most < inf else f"of at least {least:g}"
    removed = f"Remove the activation{_of_layer(group)}"
    if (call := call_of(group)) is not None:
        removed = f"Compare `{call.subject}` itself with them"
    left = ""
    if found.beyond is not None and found.beyond < 1:
        left = f" The best predictions leave {100 * found.beyond:.2g} % of their variance, if the error is squared."
    return Text(
        said(
            "a gradient towards values that the model cannot return",
            f"{{op}} only gives values {only}, and the targets of this step go {{targets}}.{left}",
        ),
        f"{removed}, so that the output has no limits; or scale the targets to values {only}.",
    )


def _of_layer(group: Group) -> str:
    layer = layer_of(group.trace, group.culprit)
    return f" of layer `{layer}`" if layer else ""


def _mapped(low: float, high: float) -> str:
    if (low, high) == (1.0, 2.0):
        return ", `y - 1`"
    if (low, high) == (-1.0, 1.0):
        return ", `(y + 1) / 2`"
    if low >= 0 and 200 < high <= 255:
        return ", `y / 255`"
    are_whole = low.is_integer() and high.is_integer() and low >= 0
    of_classes = "; or, if they are classes, use one unit per class, a softmax and `sparse_categorical_crossentropy`"
    return of_classes if are_whole else ""


CAUSE = Cause(
    name="targets_out_of_reach",
    meaning="targets of this step that the last activation cannot give: a sigmoid, a softmax, a tanh or a ReLU in "
    "front of a squared or absolute error, and more than 5 % of the variance of the targets is beyond its limits, by a "
    "quarter of what lies between them, or of the range of the targets, in some element. Or targets outside "
    "of 0 and 1 in a binary cross-entropy; negative ones in the loss of a Poisson distribution; zero in a percentage "
    "error; or a cross-entropy of several classes whose targets are all zero, or all greater than zero and some "
    "greater than one. The gradient trains towards the limit, until the activation is flat",
    severity="warning; error where no variable gets any gradient, in this step or before",
    fix="another activation, or other units for the targets",
    text=message_and_fix,
    plight="a gradient towards values out of reach",
    told_at_once=True,
    edits=(without_activation,),
)
