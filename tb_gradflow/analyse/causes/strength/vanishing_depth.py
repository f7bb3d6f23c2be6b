"""The gradient vanishes on its path from the loss."""

from __future__ import annotations

from collections.abc import Iterable
from math import log10, prod, sqrt
from statistics import median

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.settings import not_saturating
from tb_gradflow.analyse.evidence.gradient_sizes import (
    SAME_VALUE,
    course_of,
    element_count,
    inside_loop,
    just_behind,
    steepest,
)
from tb_gradflow.analyse.evidence.optimum import is_at_goal, is_fitted, is_settled
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import SHIFTS, SLICES, SOFTMAX, constant_of, tensor_of
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.step.measured import UPDATE_NORM, VANISHING_BELOW, WEIGHT_NORM, Measured
from tb_gradflow.analyse.words.fields import SIZE, Template, share_of_zeros
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.phrases import AS_AT_ITS_END, AT_A_MINIMUM, CHECK, nothing_left_to_learn
from tb_gradflow.record.report import Severity
from tb_gradflow.record.schema import EAGER


def rule(suspect: Suspect) -> Verdict | None:
    """Many ops that each shrink it a little. The op named is the one that shrinks it most, among those of the type that
    shrinks it most. An average gives each of its elements a small part: that is not where a gradient vanishes, as long
    as others shrink it too."""
    course = course_of(suspect)
    shrinking = [share for kind, share in course.items() if kind not in _AVERAGES and share.total > 0]
    worst = max(shrinking or course.values(), key=lambda share: share.total, default=None)
    expected = is_at_goal(suspect) or keeps_pace(suspect)
    severity: Severity = "info" if expected else "warning"
    place = inside_loop(suspect, worst.most[1]) if worst is not None else suspect.culprit
    # The path of an eager loss is not known.
    return Verdict("vanishing_depth", severity, NO_OP if suspect.type_of(place) == EAGER else place)


def nothing_left(suspect: Suspect) -> Verdict | None:
    """The predictions match their targets: nothing vanishes on the path. The activation in front of the loss is flat
    then, as it should be."""
    return Verdict("vanishing_depth", "info", NO_OP) if is_fitted(suspect) else None


def at_a_minimum(suspect: Suspect) -> Verdict | None:
    """The training has come to a minimum of its loss."""
    return Verdict("vanishing_depth", "info", NO_OP) if is_settled(suspect) else None


def given_tiny(suspect: Suspect) -> Verdict | None:
    """A gradient close to zero was passed to the recorder."""
    return Verdict("vanishing_depth", "info" if suspect.measured.is_learned(suspect.target) else "warning", NO_OP)


_AVERAGES = frozenset({"Mean", "DivNoNan"})

# Element-wise products: a small factor there comes from the program.
_FACTORS = frozenset({"Mul", "MulNoNan"})

# Inputs of about one shrink nothing, summed over a batch; those that shrink this many decades are about a thousandth.
_TAKEN_BY_INPUT = 3.0

# Relative to the updates of other variables: slower ones have fallen behind.
_SLOWEST = 0.1

# Where a softmax removes what its entries have in common, except for the curvature of a function in between.
_NEARLY_CANCELLED = 2.0

_BENT = frozenset({"Tanh", "Sigmoid", "Relu", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign", "Erf"})
_AS_FAR_AS_SOFTMAX = 24


def common_to_a_softmax(suspect: Suspect) -> Verdict | None:
    """A value that is added to all entries of a softmax hardly changes its output: a gradient arrives at the sum, and
    almost cancels over the entries. The query of an additive attention starts this way; its gradient grows as the keys
    learn."""
    most, place = steepest(suspect)
    if most < _NEARLY_CANCELLED or suspect.type_of(place) not in SHIFTS or not _is_spread(suspect, place):
        return None
    behind = [suspect.type_of(op) for op in just_behind(suspect, place, _AS_FAR_AS_SOFTMAX)]
    weighed = next((index for index, kind in enumerate(behind) if kind in SOFTMAX), 0)
    bent = not _BENT.isdisjoint(behind[:weighed])
    return Verdict("vanishing_depth", "info", place) if bent else None


def _is_spread(suspect: Suspect, place: int) -> bool:
    """Whether a sum adds the same value to several entries: the variable's summand is smaller than the result."""
    topology = suspect.topology
    trace = topology.trace
    whole = element_count(trace.ops[place].outputs[0].shape)
    made = topology.reached_from(topology.readers[suspect.state.variable])
    parts = [edge for edge in trace.ops[place].inputs if edge.op >= 0 and edge.op in made]
    sizes = [element_count(tensor.shape) for edge in parts if (tensor := tensor_of(trace, edge)) is not None]
    return whole > 0 and any(0 < size < whole for size in sizes)


# In float32, the softmax of a score that lies this far below another one is exactly zero.
_NO_WEIGHT = 104.0


def mask_of_a_softmax(suspect: Suspect) -> Verdict | None:
    """A variable that is added to the scores of a softmax, and keeps some of them from any weight: its values are huge,
    and its gradient is exactly zero in these elements. Those that the softmax weighs share what little arrives."""
    variable, gradient = suspect.state.variable, suspect.state.gradient
    size = _per_element(suspect.measured, variable, WEIGHT_NORM)
    if gradient is None or not 0 < gradient.zero_fraction < 1 or size < _NO_WEIGHT:
        return None
    topology = suspect.topology

    def onward(op: int) -> Iterable[int]:
        same = topology.trace.ops[op].reads is not None or suspect.type_of(op) in SAME_VALUE | SHIFTS | SLICES
        return topology.onward(op) if same else ()

    reached = walked(topology.readers[variable], onward)
    softmax = next((op for op in reached if suspect.type_of(op) in ("Softmax", "LogSoftmax")), -1)
    return Verdict("vanishing_depth", "info", softmax) if softmax >= 0 else None


def small_input(suspect: Suspect) -> Verdict | None:
    """A gradient of normal size arrives at the product with the variable, and the other factor is close to zero:
    nothing has vanished on the path from the loss. The vector of a capsule is that short before it has learned. Only if
    the layers that compute this input learn; otherwise it stays small.
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
    """The first product with the variable at which a gradient of normal size arrives, and that shrinks all of it for
    the variable; -1 if there is none."""
    topology, gradient = suspect.topology, suspect.state.gradient
    queue = list(topology.readers[suspect.state.variable])
    for op in queue:  # grows while it is walked
        if suspect.type_of(op) in PRODUCTS - _FACTORS:
            arrived = suspect.measured.of_op(suspect.target, op)
            if arrived is None or gradient is None or arrived.max_abs < VANISHING_BELOW:
                continue
            if log10(arrived.max_abs / gradient.max_abs) >= _TAKEN_BY_INPUT:
                return op
        elif topology.trace.ops[op].reads is not None or suspect.type_of(op) in SAME_VALUE:
            queue.extend(topology.onward(op))
    return -1


def keeps_pace(suspect: Suspect) -> bool:
    """Whether the step moved the variable about as far as those whose gradient has a normal size: Adam and similar
    optimizers divide by that size. Updates are compared per element."""
    measured, target = suspect.measured, suspect.target
    usual = measured.once(("pace", target), lambda: _usual_pace(suspect))
    return usual > 0 and _per_element(measured, suspect.state.variable, UPDATE_NORM) >= _SLOWEST * usual


def _usual_pace(suspect: Suspect) -> float:
    """The median over the variables that get a gradient of normal size from the same target; 0 if there are none."""
    measured = suspect.measured
    paces = [
        _per_element(measured, entry.variable, UPDATE_NORM)
        for entry in suspect.topology.trace.variable_gradients
        if entry.target == suspect.target
        and (gradient := measured.of_variable(entry)) is not None
        and gradient.max_abs >= VANISHING_BELOW
    ]
    return median(paces) if paces else 0.0


def _per_element(measured: Measured, variable: int, norm: int) -> float:
    """The root mean square of the elements of a variable, or of its update; 0 if it is not known."""
    shape = measured.topology.trace.variables[variable].shape
    if measured.variables is None or any(size is None for size in shape):
        return 0.0
    return float(measured.variables[variable, norm]) / sqrt(max(prod(size or 1 for size in shape), 1))


def message_and_fix_of_given(group: Group) -> Text:
    return Template(
        "{they_have} been given {size}{line}. How it was computed is not recorded.",
        f"Check the size of the loss and of its inputs: both should be around one; {CHECK}.",
    )(group)


def message_and_fix(group: Group) -> Text:
    if group.verdict.severity == "info" and (is_at_goal(group.suspect) or is_fitted(group.suspect)):
        return nothing_left_to_learn(group)
    if group.verdict.severity == "info" and is_settled(group.suspect):
        return Template(SIZE + AT_A_MINIMUM, AS_AT_ITS_END)(group)
    if group.verdict.culprit == NO_OP:
        return Template(
            SIZE + "it is not known where it vanishes: the loss was computed eagerly, so its path is not recorded.",
            "Run the step inside `tf.function`, or record it with `tb_gradflow.watch`, to see where. If terms of the "
            "loss cancel, or appear on both sides of a quotient, only rounding noise is left.",
        )(group)
    if group.verdict.severity == "info" and common_to_a_softmax(group.suspect) is not None:
        return Template(
            SIZE + "it nearly cancels at {op}: the value computed from {them} is added to all entries alike, and the "
            "softmax that follows cancels it.",
            "Nothing to fix if this gradient grows in later steps: it does so once the entries differ.",
        )(group)
    if group.verdict.severity == "info" and mask_of_a_softmax(group.suspect) is not None:
        share = share_of_zeros(group)
        return Template(
            SIZE + "{op} takes {them} as a part of its scores, and gives no weight at all to what lies so far below: "
            f"{share:.0%} of the elements get exactly zero.",
            "Nothing to fix in a mask. `trainable=False`, or a constant, keeps the optimizer away from it.",
        )(group)
    takes_next_to_nothing = product_with_next_to_nothing(group.suspect) == group.culprit >= 0
    if takes_next_to_nothing and group.op is not None and group.op.given:
        return Template(
            SIZE + "it arrives at {op}, which multiplies it by the data, and their numbers are close to zero.",
            "Scale the data: `x = (x - x.mean(axis=0)) / x.std(axis=0)`, with the numbers of the training data.",
        )(group)
    if group.verdict.severity == "info" and takes_next_to_nothing:
        return Template(
            SIZE + "it arrives at {op}, which multiplies it by the input of that layer, and that input is close to "
            "zero.",
            "Nothing to fix if this gradient grows in later steps; otherwise, scale the input, for example with "
            "`keras.layers.BatchNormalization()` before it.",
        )(group)
    if group.verdict.severity == "info":
        return Template(
            SIZE + "the optimizer still moves {them} about as far as the other variables.",
            "Nothing to fix as long as it does. Optimizers such as Adam divide by the size of the gradient, down to "
            "their `epsilon`.",
        )(group)
    if factor := _small_factor(group):
        return Template(
            SIZE + f"most of it is lost at {{op}}, which multiplies by {factor:.3g}.",
            "Leave this factor out, or choose one close to 1: optimizers such as Adam add an `epsilon`, 1e-7 by "
            "default, to the size of the gradient, and a smaller gradient hardly moves anything.",
        )(group)
    if _has_no_layers(group):
        return Template(
            SIZE + "it vanishes on its path from the loss, most of all at {op} and similar ops: the values there are "
            "far from one.",
            "Bring them close to one: divide the prediction and the target by the size of the target, and let the "
            "variable hold a multiple of a typical value, `{variable} = typical * multiple`.",
        )(group)
    softmax = course_of(group.suspect).get("Softmax")
    if softmax is not None and softmax.total >= _BY_SOFTMAX:
        return Template(
            SIZE + "it vanishes on its path from the loss, most of all at {op} and similar ops.",
            "Bring the scores, and the values that they weigh, to a size of around one: "
            "`keras.layers.LayerNormalization()` before the attention, or larger initial weights.",
        )(group)
    return Template(
        SIZE + "it vanishes on its path from the loss, most of all at {op} and similar ops.",
        'Keep the gradient alive on its path: `activation="relu"` with `kernel_initializer="he_normal"`, '
        "`keras.layers.BatchNormalization()`, or residual connections, `x = x + layer(x)`.",
    )(group)


# It passes on only how the gradients of its entries differ: here, that is at most a tenth of them.
_BY_SOFTMAX = 1.0

# A factor of three orders of magnitude takes as many of the seven that a vanishing gradient has lost.
_SMALL_FACTOR = 1e-3


def _small_factor(group: Group) -> float:
    """The small constant of the program by which the culprit multiplies; 0 if it does nothing like that."""
    op = group.op
    if op is None or op.type not in ("Mul", "RealDiv"):
        return 0.0
    values = [value for place in (0, 1) if (value := constant_of(op, place))]
    if len(values) != 1 or (op.type == "RealDiv" and constant_of(op, 1) is None):
        return 0.0
    factor = values[0] if op.type == "Mul" else 1 / values[0]
    return factor if abs(factor) < _SMALL_FACTOR else 0.0


def _has_no_layers(group: Group) -> bool:
    """Whether only arithmetic leads from the variables to the loss: no layer, no matrix product."""
    topology, trace, target = group.suspect.topology, group.trace, group.suspect.target
    if target < 0:
        return False
    ways = topology.gradient(target)
    readers = (reader for variable in group.variables for reader in topology.readers[variable])
    passed = walked((each for each in readers if ways.hops[each] >= 0), lambda op: (ways.onward[op],))
    kinds = {trace.ops[op].type for op in passed}
    return bool(kinds) and not trace.layers and kinds.isdisjoint(PRODUCTS - {"Mul", "MulNoNan"})


CAUSE = Cause(
    name="vanishing_depth",
    meaning="the largest element is below 1e-7; the finding names the op that shrinks it most, among the ops of the "
    "type that shrinks it most between loss and variable",
    severity="warning; info if the loss is close to zero as well, if the optimizer still moves the variable about as "
    "far as the others, if the input of its layer is close to zero and is computed from variables that train, if it is "
    "a mask that is added to the scores of a softmax and keeps some of them from any weight, or if "
    "the recorded steps show that the training has come to a minimum",
    fix="normalisation, residuals, initialisation",
    text=message_and_fix,
    text_of_given=message_and_fix_of_given,
    told_at_once=True,
    edits=(not_saturating,),
)
