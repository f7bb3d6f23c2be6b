"""Functions that are too steep: the number by which their input was multiplied before."""

from __future__ import annotations

from tb_gradflow.analyse.graph.op_sets import constant_of
from tb_gradflow.analyse.words.names import Group, called, place_of

MUCH = 10.0
"""A factor with which values of about one saturate the function: a sigmoid's slope at 10 is 5e-5, and tanh's 8e-9."""

# A shift between the factor and the function leaves it as steep, and a square makes it steeper.
_SHIFTS = ("AddV2", "Add", "Sub", "Neg", "Identity", "Cast", "Reshape", "Square")
_LIMITS = ("Minimum", "Maximum", "ClipByValue", "Relu6")
_FAR = 4


def made_large(group: Group) -> str:
    """The number by which the culprit's input was multiplied or divided before; empty if that does not make it much
    larger."""
    place = _argument(group, group.culprit) if group.culprit >= 0 else -1
    for _ in range(_FAR):
        if place < 0:
            return ""
        if told := _factor_at(group, place):
            return told
        if group.trace.ops[place].type not in _SHIFTS:
            return ""
        place = _argument(group, place)
    return ""


def made_large_between_limits(group: Group) -> str:
    """The same for a limit, where the number may also be between it and a later limit."""
    if told := made_large(group):
        return told
    onward, ops = group.suspect.topology.onward, group.trace.ops
    for op in onward(group.culprit) if group.culprit >= 0 else ():
        if (told := _factor_at(group, op)) and any(ops[user].type in _LIMITS for user in onward(op)):
            return told
    return ""


def less_steep(told: str) -> str:
    """What to do about it."""
    less = "Divide by a larger" if " divides by " in told else "Multiply by a smaller"
    return less + " number, so that the input is around one; a schedule can sharpen it later"


def _argument(group: Group, op: int) -> int:
    """The producer of an op's input; of several, the one that is computed from variables; -1 if there is none."""
    given = [edge.op for edge in group.trace.ops[op].inputs if edge.op >= 0]
    learned = [place for place in given if group.suspect.topology.of_variables[place]]
    return next(iter(learned or given), -1)


def _factor_at(group: Group, place: int) -> str:
    op = group.trace.ops[place]
    if op.type not in ("Mul", "RealDiv"):
        return ""
    first, second = constant_of(op, 0), constant_of(op, 1)
    if op.type == "RealDiv":
        told = f"divides by {second:.3g}" if second and 1 / abs(second) >= MUCH else ""
    else:
        factor = first if second is None else second
        told = f"multiplies by {factor:.3g}" if factor is not None and abs(factor) >= MUCH else ""
    return f"{called(group.trace, place)}{place_of(group.trace, place)} {told}" if told else ""
