"""Losses that have reached zero, which is the minimum of most losses, and the maximum of some."""

from __future__ import annotations

from math import log10

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import constant_of
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import VANISHING_BELOW
from tb_gradflow.record.schema import Op

# Their output is never negative.
_POSITIVE = frozenset({"Exp", "Sigmoid", "Softmax", "Softplus", "Square", "SquaredDifference", "Abs", "Relu", "Relu6"})

# Their output has the sign of the input.
_SIGN_KEEPING = frozenset(
    {"Sum", "Mean", "Max", "Min", "Reshape", "Squeeze", "ExpandDims", "Identity", "Cast", "Transpose", "BroadcastTo"}
    | {"AddV2", "Add", "AddN", "Pack", "ConcatV2", "StridedSlice", "GatherV2"}
)


# A loss that was ten times larger in the first recorded step has been learned from.
_HAS_LEARNED = 10.0

_AVERAGES = frozenset({"Mean", "Sum", "DivNoNan"})


def is_at_goal(suspect: Suspect) -> bool:
    """Whether the loss is close to zero, and zero is not its maximum: `-sum(exp(-x * x))` is zero if nothing fits at
    all."""
    return suspect.measured.is_learned(suspect.target) and not _is_negative(suspect)


def is_fitted(suspect: Suspect) -> bool:
    """Whether a gradient is close to zero only because the predictions match their targets, as the derivatives of most
    losses then do: the network itself passes on what it is given. A cross-entropy is fitted long before its loss is as
    close to zero as `is_at_goal` asks for. Factors of the program are no reason: they shrink the loss as well."""
    measured, target, gradient = suspect.measured, suspect.target, suspect.state.gradient
    if gradient is None or not measured.is_small(target):
        return False
    untrained = measured.step == 0 if measured.alone else measured.shrunk_by(target) < _HAS_LEARNED
    if (untrained and not measured.is_learned(target)) or _is_negative(suspect):
        return False
    return gradient.max_abs * 10 ** _decades_of_loss(suspect) >= VANISHING_BELOW


# At a minimum, gradients are this much smaller than in the first recorded step: that of one variable, and all others.
_SETTLED, _OTHERS_SETTLED = 1e-3, 1e-2

# The gradient of a row, compared with that of the variable to which all rows add up, and with any that vanishes.
_ALIVE, _ALIVE_AT_ALL = 1e3, 10 * VANISHING_BELOW


def is_settled(suspect: Suspect) -> bool:
    """Whether a gradient is close to zero because the training has come to a minimum, of a loss that need not be zero:
    it had a normal size in the first recorded step, those of all other variables have shrunk as well, and it still
    arrives at what is computed with the variable, where rows or terms now cancel each other. A network that has died
    passes no gradient on to there.
    """
    measured, topology, gradient = suspect.measured, suspect.topology, suspect.state.gradient
    if gradient is None or suspect.target < 0 or _is_lost_in_between(suspect):
        return False
    first = measured.first_gradient(suspect.state.variable)
    if first * _SETTLED < VANISHING_BELOW or gradient.max_abs > first * _SETTLED:
        return False

    def others() -> bool:
        return all(
            report.max_abs <= measured.first_gradient(entry.variable) * _OTHERS_SETTLED
            for entry in topology.trace.variable_gradients
            if entry.target == suspect.target and (report := measured.of_variable(entry)) is not None and report.max_abs
            if report.max_abs >= VANISHING_BELOW
        )

    return measured.once(("settled", suspect.target), others) and any(
        report.max_abs >= max(gradient.max_abs * _ALIVE, _ALIVE_AT_ALL)
        for op in _first_with_data(suspect)
        if (report := measured.of_op(suspect.target, op)) is not None
    )


def _is_lost_in_between(suspect: Suspect) -> bool:
    """Whether the gradient is lost at an op that changes each element of the variable by itself, such as a clip: there
    is nothing that could cancel."""
    if suspect.culprit < 0 or suspect.producer < 0:
        return False
    op, producer = suspect.op, suspect.topology.trace.ops[suspect.producer]
    arriving = suspect.measured.of_op(suspect.target, suspect.culprit)
    mixes = op.type in PRODUCTS or op.type in ("Softmax", "LogSoftmax", "Cumsum", "Cumprod")
    alone = op.data is False and not mixes and len(op.outputs) == len(suspect.edges) == 1
    kept = alone and len(producer.outputs) == 1 and op.outputs[0].shape == producer.outputs[0].shape
    return kept and arriving is not None and arriving.max_abs >= _ALIVE_AT_ALL


def _first_with_data(suspect: Suspect) -> list[int]:
    """The ops that combine a value computed from the variable alone with data."""
    topology, ops = suspect.topology, suspect.topology.trace.ops
    readers = topology.readers[suspect.state.variable]
    alone = walked(readers, lambda op: (user for user in topology.onward(op) if ops[user].data is False))
    return [user for op in alone for user in topology.onward(op) if ops[user].data is not False]


def _decades_of_loss(suspect: Suspect) -> float:
    """By how many orders of magnitude the ops behind the last weight shrink the gradient, but for averages and factors
    of the program."""
    topology, measured, target = suspect.topology, suspect.measured, suspect.target
    readers = [op for op in topology.readers[suspect.state.variable] if topology.gradient(target).onward[op] >= 0]
    if not readers:
        return 0.0
    way = topology.gradient(target).from_op(readers[0])
    lost, level = 0.0, 1.0
    for place in reversed(range(len(way) - 1)):
        passing = topology.trace.ops[way[place + 1]]
        if passing.type in PRODUCTS and any(
            topology.of_variables[edge.op] for edge in passing.inputs if edge.op >= 0 and edge.op != way[place]
        ):
            break
        report = measured.of_op(target, way[place])
        if report is None or not report.max_abs:
            continue
        if passing.type not in _AVERAGES and not _is_scaling(passing):
            lost += log10(level / report.max_abs)
        level = report.max_abs
    return lost


def _is_scaling(op: Op) -> bool:
    """Whether an op multiplies by a constant, or divides by one."""
    return op.type in ("Mul", "RealDiv") and any(constant_of(op, place) is not None for place in (0, 1))


def _is_negative(suspect: Suspect) -> bool:
    """Whether the loss is the negative of a value without a sign, which the suspect or an op after it computes."""
    ops = suspect.topology.trace.ops
    way = suspect.topology.gradient(suspect.target).from_op(suspect.culprit) if suspect.culprit >= 0 else ()
    sign, before = 0, -1
    for op in way:
        if ops[op].type in _POSITIVE:
            sign = 1
        elif ops[op].type not in _SIGN_KEEPING:
            sign *= _factor(ops[op], before)
        before = op
    return sign < 0


def _factor(op: Op, given: int) -> int:
    """The sign of the factor by which an op multiplies its input; 0 if it is not known."""
    if op.type == "Neg":
        return -1
    if op.type == "Sub":
        return -1 if [edge.input for edge in op.inputs if edge.op == given] == [1] else 1
    if op.type in ("Mul", "RealDiv"):
        known = [value for place in (0, 1) if (value := constant_of(op, place))]
        divisor_is_given = op.type == "RealDiv" and constant_of(op, 0) is not None
        return (1 if known[0] > 0 else -1) if known and not divisor_is_given else 0
    return 0


def is_last(topology: Topology, target: int, op: int) -> bool:
    """Whether the output of an op is not multiplied by any weight: then the loss follows."""
    ops = topology.trace.ops
    way = topology.gradient(target).from_op(op) if op >= 0 and target >= 0 else ()
    return (
        op >= 0
        and target >= 0
        and not any(
            ops[each].type in PRODUCTS
            and any(topology.of_variables[edge.op] and edge.op not in way[:place] for edge in ops[each].inputs)
            for place, each in enumerate(way)
            if place
        )
    )
