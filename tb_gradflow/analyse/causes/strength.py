"""Gradients that fade or grow between the loss and a variable, measured along the way from the loss."""

from __future__ import annotations

from math import log10, prod, sqrt
from statistics import median

from tb_gradflow.analyse.causes.goal import is_at_goal
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import SOFTMAX
from tb_gradflow.analyse.step.magnitude_path import Course
from tb_gradflow.analyse.step.measured import UPDATE_NORM, VANISHING_BELOW, Measured
from tb_gradflow.record.report import Severity
from tb_gradflow.record.schema import EAGER

# One op that alone takes this many orders of magnitude is no matter of depth.
_SINGLE_DECADES = 4.0

# Products element by element: a small factor there is one of the program's own.
_FACTORS = frozenset({"Mul", "MulNoNan"})

# Inputs of about one, over a batch, take nothing; those that take this many are of a thousandth.
_TAKEN_BY_INPUT = 3.0

# Of the pace of others: what moves slower than this has fallen behind.
_SLOWEST = 0.1

_SAME_VALUE = frozenset({"Reshape", "Cast", "Identity", "ExpandDims", "Squeeze", "Transpose", "BroadcastTo"})
_DIVIDING = frozenset({"Rsqrt", "FusedBatchNormV3"})
_NEAR = 8
_SUMS = frozenset({"AddV2", "Add", "BiasAdd", "Sub"})

# Where a softmax takes out what its entries have in common, but for the bend of a function in between.
_NEARLY_CANCELLED = 2.0
_BENT = frozenset({"Tanh", "Sigmoid", "Relu", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign", "Erf"})
_AS_FAR_AS_SOFTMAX = 24

LOCAL_FADING = {
    "Sigmoid": "saturation_sigmoid",
    "Tanh": "saturation_sigmoid",
    "Softmax": "saturation_softmax",
    "LogSoftmax": "saturation_softmax",
}


def course_of(suspect: Suspect) -> Course:
    """How the gradient's size changes between the loss and the variable; empty if it was not measured."""
    gradient = suspect.topology.gradient(suspect.target)
    readers = [op for op in suspect.topology.readers[suspect.state.variable] if gradient.onward[op] >= 0]
    report = suspect.state.gradient
    if not readers or report is None or not report.max_abs:
        return {}
    takers = {taker for reader in readers for taker in suspect.topology.onward(reader) if gradient.hops[taker] >= 0}
    nearest_first = sorted(takers, key=lambda op: (gradient.hops[op], op))
    return suspect.measured.courses(suspect.target).to_variable(nearest_first, report.max_abs)


def shift_without_influence(suspect: Suspect) -> Verdict | None:
    """Rounding noise: at the sum that the variable shifts the gradient is there, and over all elements it cancels.

    Whatever takes the offset out again, a normalisation some layers on or a masked softmax.
    """
    most, place = _steepest(suspect)
    sums = most >= _SINGLE_DECADES and suspect.type_of(place) in _SUMS
    return Verdict("shift_invariant_parameter", "info", place) if sums else None


def common_to_a_softmax(suspect: Suspect) -> Verdict | None:
    """What is added to all that a softmax weighs hardly changes it: at the sum the gradient is there, and over the
    entries it nearly cancels. So begins the query of an additive attention, and it grows as the keys learn."""
    most, place = _steepest(suspect)
    if most < _NEARLY_CANCELLED or suspect.type_of(place) not in _SUMS or not _is_spread(suspect, place):
        return None
    behind = [suspect.type_of(op) for op in _just_behind(suspect, place, _AS_FAR_AS_SOFTMAX)]
    weighed = next((index for index, kind in enumerate(behind) if kind in SOFTMAX), 0)
    bent = not _BENT.isdisjoint(behind[:weighed])
    return Verdict("vanishing_depth", "info", place) if bent else None


def _is_spread(suspect: Suspect, place: int) -> bool:
    """Whether a sum adds the same to several entries: what comes from the variable is smaller than the result."""
    topology = suspect.topology
    trace = topology.trace
    whole = _size(trace.ops[place].outputs[0].shape)
    made = topology.reached_from(topology.readers[suspect.state.variable])
    parts = [edge for edge in trace.ops[place].inputs if edge.op >= 0 and edge.op in made]
    sizes = [_size(trace.ops[edge.op].outputs[edge.output].shape) for edge in parts]
    return whole > 0 and any(0 < size < whole for size in sizes)


def _size(shape: tuple[int | None, ...] | None) -> int:
    """How many elements there are, those of an unknown length counted as one; 0 if nothing is known."""
    return prod(length or 1 for length in shape) if shape is not None else 0


def scale_without_influence(suspect: Suspect) -> Verdict | None:
    """The same for a factor: at the product with it the gradient is there, over all elements it cancels, and behind the
    product everything is divided by its own length or deviation. Of a single number no noise may be left at all."""
    most, place = _steepest(suspect)
    if suspect.state.gradient is not None and not suspect.state.gradient.max_abs:
        single = _size(suspect.topology.trace.variables[suspect.state.variable].shape) == 1
        most, place = (_SINGLE_DECADES, suspect.culprit) if single else (0.0, -1)
    if most < _SINGLE_DECADES or suspect.type_of(place) != "Mul":
        return None
    if suspect.state.variable not in [_read_at(suspect, edge.op) for edge in suspect.topology.trace.ops[place].inputs]:
        return None
    divided = any(suspect.type_of(op) in _DIVIDING for op in _just_behind(suspect, place))
    return Verdict("shift_invariant_parameter", "info", place) if divided else None


def _just_behind(suspect: Suspect, place: int, count: int = _NEAR) -> list[int]:
    queue = list(suspect.topology.onward(place))
    for op in queue:  # grows while it is walked
        if len(queue) < count:
            queue.extend(user for user in suspect.topology.onward(op) if user not in queue)
    return queue


def small_factor_by_design(suspect: Suspect) -> Verdict | None:
    """A product with a variable that starts next to zero and is learning: ConvNeXt's layer scale."""
    most, place = _steepest(suspect)
    if most < _SINGLE_DECADES or suspect.type_of(place) != "Mul":
        return None
    factors = [_read_at(suspect, edge.op) for edge in suspect.topology.trace.ops[place].inputs]
    small = [factor for factor in factors if factor not in (None, suspect.state.variable)]
    learning = any(suspect.measured.learns(factor) for factor in small if factor is not None)
    return Verdict("zero_init_by_design", "info", place) if learning else None


def _read_at(suspect: Suspect, op: int) -> int | None:
    """The variable whose value an op is, in another shape or type; null if it is none's."""
    trace = suspect.topology.trace
    while op >= 0 and trace.ops[op].reads is None and trace.ops[op].type in _SAME_VALUE and trace.ops[op].inputs:
        op = trace.ops[op].inputs[0].op
    return trace.ops[op].reads if op >= 0 else None


def local_saturation(suspect: Suspect) -> Verdict | None:
    """One squashing function alone takes most: it is saturated, and depth has no part in it."""
    most, place = _steepest(suspect)
    if most < _SINGLE_DECADES or suspect.type_of(place) not in LOCAL_FADING:
        return None
    return Verdict(LOCAL_FADING[suspect.type_of(place)], "warning", place)


def _steepest(suspect: Suspect) -> tuple[float, int]:
    return max((share.most for share in course_of(suspect).values()), default=(0.0, -1))


def _inside_loop(suspect: Suspect, place: int) -> int:
    """The loop in front of an op, if no gradient was recorded on the way into it: the op is then only where the
    gradient is next known."""
    topology, measured, target = suspect.topology, suspect.measured, suspect.target

    def search() -> int:
        queue = [place]
        for op in queue:  # grows while it is walked
            for edge in topology.trace.ops[op].inputs:
                if edge.op < 0 or edge.op in queue or measured.of_op(target, edge.op) is not None:
                    continue
                if suspect.type_of(edge.op) in ("While", "StatelessWhile"):
                    return edge.op
                queue.append(edge.op)
        return place

    return measured.once(("loop", target, place), search) if topology.has_carried else place


def small_input(suspect: Suspect) -> Verdict | None:
    """The gradient is there at the product with the variable, and what it is multiplied with is next to zero: nothing
    has faded on the way from the loss. A capsule is as short as that before it has learned.

    Only where what makes that input learns: else it stays as it is.
    """
    place = product_with_next_to_nothing(suspect)
    if place < 0:
        return None
    topology, measured = suspect.topology, suspect.measured
    before = topology.made_by(place)
    learning = any(
        entry.variable != suspect.state.variable
        and (gradient := measured.of_variable(entry)) is not None
        and gradient.max_abs >= VANISHING_BELOW
        and not before.isdisjoint(topology.readers[entry.variable])
        for entry in topology.trace.variable_gradients
    )
    return Verdict("vanishing_depth", "info", place) if learning else None


def product_with_next_to_nothing(suspect: Suspect) -> int:
    """Of the products that the variable goes into, the first whose gradient is of an ordinary size, and that takes all
    of it for the variable; -1 if there is none."""
    topology, gradient = suspect.topology, suspect.state.gradient
    queue = list(topology.readers[suspect.state.variable])
    for op in queue:  # grows while it is walked
        if suspect.type_of(op) in PRODUCTS - _FACTORS:
            arrived = suspect.measured.of_op(suspect.target, op)
            if arrived is None or gradient is None or arrived.max_abs < VANISHING_BELOW:
                continue
            if log10(arrived.max_abs / gradient.max_abs) >= _TAKEN_BY_INPUT:
                return op
        elif topology.trace.ops[op].reads is not None or suspect.type_of(op) in _SAME_VALUE:
            queue.extend(topology.onward(op))
    return -1


def keeps_pace(suspect: Suspect) -> bool:
    """Whether the step moved the variable about as far as those whose gradient is of an ordinary size: Adam and its
    like divide by that size. Lengths of a step are compared by the element."""
    measured, target = suspect.measured, suspect.target
    usual = measured.once(("pace", target), lambda: _usual_pace(suspect))
    return usual > 0 and _pace(measured, suspect.state.variable) >= _SLOWEST * usual


def _usual_pace(suspect: Suspect) -> float:
    """The median over the variables that the same target gives a gradient of an ordinary size; 0 if there is none."""
    measured = suspect.measured
    paces = [
        _pace(measured, entry.variable)
        for entry in suspect.topology.trace.variable_gradients
        if entry.target == suspect.target
        and (gradient := measured.of_variable(entry)) is not None
        and gradient.max_abs >= VANISHING_BELOW
    ]
    return median(paces) if paces else 0.0


def _pace(measured: Measured, variable: int) -> float:
    """How far the step moved an element of a variable, as a root of the mean square; 0 if it is not known."""
    shape = measured.topology.trace.variables[variable].shape
    if measured.variables is None or any(size is None for size in shape):
        return 0.0
    return float(measured.variables[variable, UPDATE_NORM]) / sqrt(max(prod(size or 1 for size in shape), 1))


def vanishing_depth(suspect: Suspect) -> Verdict | None:
    """Many ops that each take a little. The op named is the one that takes most, of the kind that takes most."""
    worst = max(course_of(suspect).values(), key=lambda share: share.total, default=None)
    expected = is_at_goal(suspect) or keeps_pace(suspect)
    severity: Severity = "info" if expected else "warning"
    place = _inside_loop(suspect, worst.most[1]) if worst is not None else suspect.culprit
    # Of an eager loss nobody knows the way.
    return Verdict("vanishing_depth", severity, NO_OP if suspect.type_of(place) == EAGER else place)


def normalise_zero_vector(suspect: Suspect) -> Verdict | None:
    """`l2_normalize` of a vector of zeros multiplies by one over the root of its epsilon."""
    growth, place = min((share.least for share in course_of(suspect).values()), default=(0.0, -1))
    if growth > -_SINGLE_DECADES:
        return None
    op = suspect.topology.trace.ops[place]
    by_root = any(suspect.type_of(edge.op) == "Rsqrt" for edge in op.inputs if edge.op >= 0)
    normalises = op.type == "Rsqrt" or by_root or "normalize" in (op.api or "")
    return Verdict("normalise_zero_vector", "warning", place) if normalises else None


def exploding_recurrence(suspect: Suspect) -> Verdict | None:
    """Factors above one, multiplied. The op named is the one that adds most, of the kind that adds most."""
    worst = min(course_of(suspect).values(), key=lambda share: share.total, default=None)
    place = _inside_loop(suspect, worst.least[1]) if worst is not None else suspect.culprit
    return Verdict("exploding_recurrence", "warning", place)
