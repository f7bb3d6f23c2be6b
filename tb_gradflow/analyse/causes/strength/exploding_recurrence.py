"""The gradient grows on its path from the loss."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.not_finite.in_front import first_of
from tb_gradflow.analyse.causes.not_finite.singular import accused
from tb_gradflow.analyse.evidence.bodies import first_of_loop, unrecorded_before
from tb_gradflow.analyse.evidence.by_hand import has_grown
from tb_gradflow.analyse.evidence.gradient_sizes import course_of, inside_loop
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.over_time.updates import BY_THE_RATE
from tb_gradflow.analyse.step.birth import is_bad, is_infinite, values_of
from tb_gradflow.analyse.step.learnable import targets_in
from tb_gradflow.analyse.words.fields import SIZE, Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.phrases import CHECK


def rule(suspect: Suspect) -> Verdict | None:
    """A product of factors above one. The op named is the one that adds most, among those of the type that adds
    most."""
    if (found := _scaled_by_hand(suspect) or _of_large_targets(suspect)) is not None:
        return found
    worst = min(course_of(suspect).values(), key=lambda share: share.total, default=None)
    place = inside_loop(suspect, worst.least[1]) if worst is not None else suspect.culprit
    return Verdict("exploding_recurrence", "warning", place)


# The limit for `exploding`: see `step.status`.
_HUGE = 1e4


def _scaled_by_hand(suspect: Suspect) -> Verdict | None:
    """The loss is multiplied by a constant without which the gradient would not be huge. A power of two is a loss
    scale, by which the gradients are divided later."""
    gradient, target = suspect.state.gradient, suspect.topology.trace.targets[suspect.target].op
    place, ops = target, suspect.topology.trace.ops
    while gradient is not None and place >= 0 and ops[place].type in ("Identity", "Cast", "Mul"):
        factor = max((each.value for each in ops[place].constants), default=0.0)
        if ops[place].type == "Mul" and factor > 1 and gradient.max_abs / factor < _HUGE:
            is_power = math.frexp(factor)[0] == 0.5
            text = Template(
                SIZE + f"{{op}} multiplies the loss by {factor:.3g}, and the gradient with it.",
                "Nothing to fix if this is a loss scale, and the gradients are divided by it before they are applied. "
                "Otherwise, use a smaller factor."
                if is_power
                else "Use a smaller factor. For a loss scale, a power of two such as `2.0**15` rounds nothing; divide "
                "the gradients by it before they are clipped and applied.",
            )
            return Verdict("exploding_recurrence", "info" if is_power else "warning", place, text)
        place = next((edge.op for edge in ops[place].inputs), -1)
    return None


def _of_large_targets(suspect: Suspect) -> Verdict | None:
    """The gradient is huge because the targets are: the model's errors are about as large as these, and with targets of
    about one, the gradient would not be huge."""
    measured, gradient, target = suspect.measured, suspect.state.gradient, suspect.target
    if gradient is None or not measured.knows_loss(target):
        return None
    low, high = targets_in(measured, target) or (0.0, 0.0)
    size = max(abs(low), abs(high))
    if size <= 1 or gradient.max_abs / size >= _HUGE or abs(measured.losses[target]) > _AS_LARGE * size**2:
        return None
    kinds = {each.type for each in suspect.topology.trace.optimizers}
    still = (
        f"{min(kinds & BY_THE_RATE)} divides by the size of the gradient, so that its steps are no longer for it, but "
        "the outputs have further to go. "
        if kinds & BY_THE_RATE
        else ""
    )
    text = Template(
        SIZE + f"the targets of this step go from {low:.3g} to {high:.3g}, and so do the errors.",
        f"{still}Train with targets of around 1, `(y - y.mean()) / y.std()` with the numbers of the training data, and "
        "turn predictions back.",
    )
    return Verdict("exploding_recurrence", "info" if kinds and kinds <= BY_THE_RATE else "warning", NO_OP, text)


# Of the squared targets: a loss above that has predictions that are larger than these.
_AS_LARGE = 2.0


def given_huge(suspect: Suspect) -> Verdict | None:
    """A huge gradient was passed to the recorder; the training diverges if its loss has grown."""
    return Verdict("exploding_recurrence", "warning", NO_OP)


def diverging(suspect: Suspect) -> Verdict | None:
    """A gradient of any size was passed to the recorder, and the loss has grown: with a learning rate that is too high,
    the weights may jump to where the loss is flat."""
    return Verdict("exploding_recurrence", "warning", NO_OP) if has_grown(suspect) else None


# Their output is bounded for any input.
_BOUNDED = frozenset(
    {"Tanh", "Sigmoid", "Softmax", "Softsign", "Sin", "Cos", "Atan", "Erf", "ClipByValue", "Minimum", "Relu6", "Rsqrt"}
    | {"L2Normalize", "FusedBatchNormV3", "LogSoftmax"}
)

# This many products with one weight, each computed from the one before, are an unrolled recurrence.
_MANY = 8

# Half of float32's decades: larger values come from growth, and one more product may overflow.
_ABOUT_TO_OVERFLOW = 1e19

# Data in large units: bytes, seconds since 1970.
LARGE_DATA = 1e10

_COPIES = frozenset({"Identity", "Cast", "Reshape", "Transpose"})


def overflowing_recurrence(suspect: Suspect) -> Verdict | None:
    """A loop, or as many products with the same weight, in which nothing bounds the state; or a gradient that has grown
    almost to the largest number."""
    if _is_singular(suspect, suspect.culprit):
        return None
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    if incoming is not None and incoming.max_abs > _ABOUT_TO_OVERFLOW and not incoming.nan_count:
        return Verdict("exploding_recurrence", "error")
    if suspect.measured.loss_is_finite(suspect.target):
        place = _growing_in(suspect, unrecorded_before(suspect))
    else:
        place = suspect.measured.once(("growing", suspect.culprit), lambda: _growing_before(suspect))
    return Verdict("exploding_recurrence", "error", place) if place >= 0 else None


def overflow_first(suspect: Suspect) -> Verdict | None:
    """A product, sum or power of finite numbers that was measured to be too large for its type, where nothing
    recurs."""
    op, values = first_of(suspect), values_of(suspect.measured)
    if op < 0 or values is None or is_recurrent(suspect):
        return None
    overflows = any(map(is_infinite, values.outputs(op))) and not any(map(is_bad, values.inputs(op)))
    return Verdict("exploding_recurrence", "error", op) if overflows else None


def diverged(suspect: Suspect) -> Verdict | None:
    """The forward pass overflowed without a singular point, and the finite values of this step are almost as large as
    numbers can be, except in the batch: weights have grown from step to step."""
    measured = suspect.measured
    if measured.loss_is_finite(suspect.target) or measured.gradients is None or measured.largest_input > LARGE_DATA:
        return None
    return Verdict("exploding_recurrence", "error") if measured.largest > _ABOUT_TO_OVERFLOW else None


def is_recurrent(suspect: Suspect) -> bool:
    """Whether anything in the step is multiplied by the same weights again and again."""
    topology = suspect.topology
    if any(topology.by_type.get(kind) for kind in LOOPS):
        return True
    return any(len(_products_with(suspect, readers)) >= _MANY for readers in topology.readers)


def _is_singular(suspect: Suspect, op: int) -> bool:
    """Whether the op has a singular point. A softmax has none: it is not finite only if its input is not."""
    return suspect.type_of(op) not in ("Softmax", "LogSoftmax") and accused(suspect, op) is not None


def _growing_before(suspect: Suspect) -> int:
    """The nearest recurrence before an op that may grow, if no op with a singular point is nearer or inside; -1 if
    there is none."""
    nearest = [suspect.culprit, *suspect.topology.ancestors(suspect.culprit)]
    if any(_is_singular(suspect, op) for op in nearest):
        return -1
    loop = _growing_in(suspect, nearest)
    return loop if loop >= 0 else _written_out(suspect, set(nearest))


def _growing_in(suspect: Suspect, ops: Iterable[int]) -> int:
    for op in ops:
        if suspect.type_of(op) in LOOPS and _grows(suspect, op):
            return first_of_loop(suspect, op)
    return -1


def _grows(suspect: Suspect, loop: int) -> bool:
    """Whether a loop carries a product with the value of the previous iteration, and nothing bounds it."""
    edges = suspect.topology.trace.ops[loop].inputs
    results = [edge.op for edge in edges if edge.carried and edge.input == 2 and edge.op >= 0]
    products = [op for op in _unbounded_before(suspect, results) if suspect.type_of(op) in PRODUCTS]
    return any(loop in _unbounded_before(suspect, [op]) for op in products if not _has_bounded_factor(suspect, op))


def _unbounded_before(suspect: Suspect, starts: Iterable[int]) -> list[int]:
    """The ops from which some ops are computed, up to an op that bounds the value or a variable of the loop."""

    def unbounded(ops: Iterable[int]) -> list[int]:
        return [op for op in ops if suspect.type_of(op) not in _BOUNDED]

    def before(op: int) -> list[int]:
        return [] if suspect.type_of(op) in LOOPS else unbounded(suspect.topology.sources(op))

    return list(walked(unbounded(starts), before))


def _has_bounded_factor(suspect: Suspect, product: int) -> bool:
    """A gate: its output is not larger than its input."""
    factors = [edge.op for edge in suspect.topology.trace.ops[product].inputs if edge.op >= 0]
    return any(suspect.type_of(op) in _BOUNDED for op in factors)


def _written_out(suspect: Suspect, nearest: set[int]) -> int:
    """The last of many products with the same variable, each computed from the one before; -1 if there are none."""
    for readers in suspect.topology.readers:
        products = sorted(op for op in _products_with(suspect, readers) if op in nearest)
        if len(products) >= _MANY and _is_chain(suspect, products):
            return products[-1]
    return -1


def _products_with(suspect: Suspect, readers: Iterable[int]) -> set[int]:
    onward = suspect.topology.onward
    copies = walked(readers, lambda op: (user for user in onward(op) if suspect.type_of(user) in _COPIES))
    return {user for op in copies for user in onward(op) if suspect.type_of(user) in PRODUCTS}


def _is_chain(suspect: Suspect, products: list[int]) -> bool:
    """Whether nothing bounds the value on the path from the first product to the last."""
    before = set(_unbounded_before(suspect, products[-1:]))
    return before.issuperset(products)


def message_and_fix_of_given(group: Group) -> Text:
    factor = has_grown(group.suspect)
    if factor:
        return Template(
            "The training diverges: the loss is " + f"{factor:.1g} times that of the first recorded step, and "
            "{names} {is_given} {size}{line}.",
            "Lower the learning rate, by a factor of ten at first. `tb_gradflow.check_gradients(loss_fn, args, "
            "gradient, learning_rate=rate)` reports which one does not overshoot.",
        )(group)
    return Template(
        "{they_have} been given {size}{line}. How it was computed is not recorded.",
        f"Check how it is computed, and the size of its inputs; {CHECK}.",
    )(group)


def _diverged(group: Group) -> Text:
    """Nothing in the step alone makes it that large: the earlier steps have made the weights so large, or, in the first
    step, the weights started that way.
    """
    measured = group.suspect.measured
    if measured.largest_input > LARGE_DATA:
        return Template(
            "{plight}: the result of {op} overflows. The batch contains values as large as "
            f"{measured.largest_input:.0e}.",
            "Scale the inputs and the targets: `(x - x.mean(0)) / (x.std(0) + 1e-7)`.",
        )(group)
    compared = f", while the batch reaches {measured.largest_input:.2g}" if measured.largest_input else ""
    if measured.step == 0:
        return Template(
            "{plight} in the very first step: the result of {op} overflows, and gradients "
            f"reach {measured.largest:.0e}{compared}.",
            "Start with smaller weights, or bound the inputs of exponentials, powers and quotients on the path: they "
            "turn small values into large ones.",
        )(group)
    return Template(
        "{plight}: the training diverges. The result of {op} overflows, and gradients of this step "
        f"reach {measured.largest:.0e}{compared}: earlier steps have made the weights that large.",
        "Lower the learning rate; if a schedule or a callback sets it, check its value in the steps before this one. "
        "Clip gradients, `keras.optimizers.Adam(clipnorm=1.0)`, so that no single step can cause this.",
    )(group)


def message_and_fix(group: Group) -> Text:
    """Large, or so large that it is no longer finite, in the forward pass or only in the backward pass."""
    suspect = group.suspect
    tame = 'initialise recurrent weights with `recurrent_initializer="orthogonal"`'
    recurs = any(suspect.topology.by_type.get(kind) for kind in LOOPS) or any(
        "recurrent" in name for name in group.names
    )
    if suspect.state.status in ("nan", "inf") or not suspect.measured.loss_is_finite(suspect.target):
        grown = suspect.measured.loss_is_finite(suspect.target)
        if not grown and not is_recurrent(suspect):
            return _diverged(group)
        what = "the gradient" if grown else "the result of {op}"
        where = " on its path back through {op}" if grown else ""
        return Template(
            "{plight}: "
            + what
            + " is multiplied by the same weights again and again"
            + where
            + ", and grows until it is infinite.",
            f'Keep the factor near one: {tame}; bound the state, `activation="tanh"`; use fewer time steps. '
            "Clipping comes too late for a value that is already infinite.",
        )(group)
    if group.op is not None and group.op.type in ("RealDiv", "Div", "Reciprocal", "Xdivy") and _alone(group):
        return Template(
            SIZE + "{op} divides by a value close to zero.",
            "Give the divisor a floor that fits the data, `{lib}.maximum(divisor, 1e-2)`, or use absolute "
            "differences: a relative difference from zero is infinite.",
        )(group)
    if group.op is not None and group.op.type in ("Exp", "Expm1") and _alone(group):
        return Template(
            SIZE + "it is multiplied by the result of {op}, which is that large.",
            "Bound the input, `{head}({lib}.minimum({x}, 10.0))`; if it is a quotient, keep its divisor away from "
            "zero.",
        )(group)
    return Template(
        SIZE + "it grows on its path from the loss, most of all at {op} and similar ops.",
        "Clip the gradient, `keras.optimizers.Adam(clipnorm=1.0)`; scale inputs and targets to around 1"
        + (f"; {tame}." if recurs else "; lower the learning rate if the gradient was small in earlier steps."),
    )(group)


def _alone(group: Group) -> bool:
    """Whether the op alone adds nearly all of the growth."""
    shares = course_of(group.suspect).values()
    return min((share.least[0] for share in shares), default=0.0) <= -_SINGLE_DECADES


# If a single op adds this many orders of magnitude, that op should be changed.
_SINGLE_DECADES = 4.0


CAUSE = Cause(
    name="exploding_recurrence",
    meaning="the largest element is above 1e4, and the finding names the op that contributes most; or it is not finite "
    "behind a loop, or behind eight products in a row, that multiply by the same weight with nothing that bounds the "
    "state; or the loss is not finite and gradients of the step reach 1e19 while the batch does not: the training "
    "diverges. Or the loss is multiplied by a large number, or its targets are as large",
    severity="warning; error where it is not finite; info for a loss times a power of two, which is a loss scale, and "
    "for large targets and an optimizer that divides by the size of the gradient",
    fix="clip, scale; a bounded state; a lower learning rate",
    text=message_and_fix,
    text_of_given=message_and_fix_of_given,
    told_at_once=True,
)
