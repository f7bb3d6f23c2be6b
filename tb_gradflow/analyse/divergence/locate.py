"""The op at which a difference begins: from the values that differ and those that do not, and from the ops that
differ."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tb_gradflow.analyse.divergence.compared import Differing
from tb_gradflow.analyse.divergence.pairing import Pairing
from tb_gradflow.analyse.divergence.structure import OpDifference, ancestors, descendants
from tb_gradflow.analyse.graph.op_sets import SAME_VALUES
from tb_gradflow.record.graph import PYTHON
from tb_gradflow.record.schema import Op, Trace

Basis = Literal[
    "batch", "weights", "changed", "unknown_input", "other_input", "between", "gradient", "optimizer", "assigned"
]
"""Why an op is named:

batch          it gets the tensor of the batch that differs
weights        it reads the variable that differs before the step
changed        it differs itself, and lies between values that agree and values that do not
unknown_input  it gets a value that the log does not hold, such as random numbers
other_input    it gets another value, which is computed from the batch or from constants alone
between        it computes the first value that differs; the ops in front of it are not excluded
gradient       its gradient arrives here differently
optimizer      none: the optimizer's update differs
assigned       none: the variable is updated without an optimizer
"""

_RANDOM = ("Random", "Stateless", "Multinomial", "Dropout")


@dataclass(frozen=True, slots=True)
class Located:
    """Where a difference begins.

    Attributes:
        basis: Why it is said to begin there.
        differing: The first value that differs.
        a: Index of the op in the first trace; None if that does not have it, or no op is known.
        b: Index of the op in the second trace.
        change: The difference in that op, if it is known.
        others: How many other ops are as likely.
    """

    basis: Basis
    differing: Differing
    a: int | None
    b: int | None
    change: OpDifference | None = None
    others: int = 0


def located(
    pair: Pairing, ops: Sequence[OpDifference], values: Sequence[Differing], beyond: Sequence[Differing]
) -> Located:
    """`beyond` are those of the values that differ beyond rounding, in the order in which a step computes them."""
    kind = beyond[0].value.kind
    if kind == "batch":
        return _of_batch(pair, beyond[0])
    if kind == "weights":
        return _of_weights(pair, ops, [each for each in beyond if each.value.kind == kind])
    if kind in ("rate", "update"):
        return _of_update(pair, beyond)
    if kind == "gradient":
        return _of_gradient(pair, ops, values, beyond)
    return _of_forward(pair, ops, values, beyond)


def _of_batch(pair: Pairing, differing: Differing) -> Located:
    first = next((number for number, op in enumerate(pair.a.ops) if op.given), None)
    return Located("batch", differing, first, None if first is None else pair.ops.get(first))


def _of_weights(pair: Pairing, ops: Sequence[OpDifference], beyond: Sequence[Differing]) -> Located:
    reads = {op.reads: number for number, op in reversed([*enumerate(pair.a.ops)]) if op.reads is not None}
    last = len(pair.a.ops)
    first = min(beyond, key=lambda each: reads.get(each.value.place, last))
    number = reads.get(first.value.place)
    new = [each for each in ops if _has_own_variable(pair, each) and (number is None or each.position[0] < number)]
    if new:
        return Located("changed", first, new[0].a, new[0].b, new[0])
    return Located("weights", first, number, None if number is None else pair.ops.get(number))


def _has_own_variable(pair: Pairing, change: OpDifference) -> bool:
    """Whether an op of one trace reads a variable that the other does not have: another layer, for example, which also
    changes the random numbers that later layers begin with."""
    if change.a is None and change.b is not None:
        reads, known = pair.b.ops[change.b].reads, set(pair.variables.values())
    else:
        reads, known = pair.a.ops[change.a or 0].reads, set(pair.variables)
    return (change.a is None or change.b is None) and reads is not None and reads not in known


def _of_update(pair: Pairing, beyond: Sequence[Differing]) -> Located:
    moved = {each.variable for each in pair.a.movements}
    # What an optimizer moves comes first: a moving average may follow from it.
    first = next((each for each in beyond if each.value.place in moved), beyond[0])
    writes = next((number for number, op in enumerate(pair.a.ops) if op.writes == first.value.place), None)
    basis: Basis = "optimizer" if first.value.place in moved else "assigned"
    return Located(basis, first, writes, None if writes is None else pair.ops.get(writes))


def _of_forward(
    pair: Pairing, ops: Sequence[OpDifference], values: Sequence[Differing], beyond: Sequence[Differing]
) -> Located:
    wrong = [each for each in beyond if each.value.kind in ("value", "loss")]
    last = len(pair.a.ops)

    def position(each: Differing) -> int:
        end = _end(pair.a, each, each.value.place)
        return end if end >= 0 else each.value.place if each.value.place >= 0 else last

    first = min(wrong, key=position)
    if first.value.kind == "value" and _end(pair.a, first, first.value.place) < 0:
        return Located("other_input", first, first.value.place, first.value.there)
    variable = _variable_of(pair.a, _end(pair.a, first, first.value.place))
    changed = [each for each in ops if each.a == position(first)]
    if variable is not None and changed:
        return Located("changed", first, changed[0].a, changed[0].b, changed[0])
    if variable is not None:
        name = pair.a.variables[variable].name
        value = replace(first.value, kind="weights", place=variable, name=name, variable=variable)
        read = position(first)
        return Located("weights", replace(first, value=value), read, pair.ops.get(read))
    good = [each for each in values if each.value.kind == "value" and not each.is_beyond]
    of_a = _region(pair.a, first, good, first.value.place, [each.value.place for each in good])
    of_b = _region(pair.b, first, good, first.value.there, [each.value.there for each in good])
    changed = [each for each in ops if not each.backward and (each.a in of_a or each.b in of_b)]
    if changed:
        return Located("changed", first, changed[0].a, changed[0].b, changed[0])
    agreeing = {(each.value.place, each.value.input) for each in good}
    unknown = [number for number in sorted(of_a) if _has_unknown_input(pair.a.ops[number], number, agreeing)]
    if unknown:
        # Another op takes the batch, which may be known to agree.
        number = min(unknown, key=lambda each: (not _is_random(pair.a.ops[each]), each))
        return Located("unknown_input", first, number, pair.ops.get(number), others=len(unknown) - 1)
    end = _end(pair.a, first, first.value.place)
    if end < 0:
        return Located("between", first, None, None)
    return Located("between", first, end, pair.ops.get(end), others=max(len(of_a) - 1, 0))


def _variable_of(trace: Trace, op: int) -> int | None:
    """The variable of which a value is a copy, if it is one."""
    while op >= 0 and trace.ops[op].reads is None:
        if trace.ops[op].type not in SAME_VALUES or len(trace.ops[op].inputs) != 1:
            return None
        op = trace.ops[op].inputs[0].op
    return None if op < 0 else trace.ops[op].reads


def _end(trace: Trace, differing: Differing, op: int) -> int:
    """The op that computes a value; -1 if no op of the trace computes it."""
    if differing.value.input < 0 or op < 0:
        return op
    edge = next((each for each in trace.ops[op].inputs if each.input == differing.value.input), None)
    return -1 if edge is None else edge.op


def _region(trace: Trace, first: Differing, good: Sequence[Differing], place: int, agreeing: Sequence[int]) -> set[int]:
    """The ops between the values that agree and the first one that does not."""
    clean = ancestors(trace.ops, [_end(trace, each, op) for each, op in zip(good, agreeing, strict=True)])
    return ancestors(trace.ops, [_end(trace, first, place)]) - clean


def _has_unknown_input(op: Op, number: int, agreeing: Collection[tuple[int, int]]) -> bool:
    is_given = any((number, each.input) not in agreeing for each in op.given)
    return is_given or op.type == PYTHON or _is_random(op)


def _is_random(op: Op) -> bool:
    return op.type.startswith(_RANDOM)


def _of_gradient(
    pair: Pairing, ops: Sequence[OpDifference], values: Sequence[Differing], beyond: Sequence[Differing]
) -> Located:
    first = beyond[0]
    start = first.value.place
    if start < 0:
        return Located("gradient", first, None, None)
    after_a, after_b = descendants(pair.a.ops, [start]), descendants(pair.b.ops, [first.value.there])
    good = {
        each.value.place
        for each in values
        if each.value.kind == "gradient" and not each.is_beyond and each.value.place in after_a
    }
    # Behind a gradient that agrees, all is well; the op whose output it belongs to comes after it.
    behind = descendants(pair.a.ops, good)
    clean = {number for number in behind if any(edge.op in behind for edge in pair.a.ops[number].inputs)}
    changed = [
        each
        for each in ops
        if (each.a in after_a and each.a not in clean)
        or (each.a is None and each.b in after_b and int(each.position[0]) not in clean)
    ]
    if changed:
        return Located("changed", first, changed[-1].a, changed[-1].b, changed[-1])
    taker = next(_takers(pair.a, start), None)
    number = start if taker is None else taker
    return Located("gradient", first, number, pair.ops.get(number))


def _takers(trace: Trace, op: int) -> Iterator[int]:
    return (number for number, each in enumerate(trace.ops) if any(edge.op == op for edge in each.inputs))
