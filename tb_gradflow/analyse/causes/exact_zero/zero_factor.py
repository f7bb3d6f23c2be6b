"""Which cause it is when the other factor of a product was made zero."""

from __future__ import annotations

from dataclasses import replace

from tb_gradflow.analyse.causes.exact_zero.mask_multiplies_to_zero import dropped, masked
from tb_gradflow.analyse.causes.flat.dead_relu import dead_relu_by_choice
from tb_gradflow.analyse.causes.flat.dead_relu import rule as dead_relu
from tb_gradflow.analyse.evidence.bodies import LISTS, PASSED_THROUGH, first_of_loop, keeps_first_state
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import CHOICES, LOOPS, is_half
from tb_gradflow.analyse.step.measured import is_zero


def factor_made_zero(suspect: Suspect) -> Verdict | None:
    """A product with a value that a dead ReLU, a dropout, a mask, an exponential or an infinite divisor has made zero:
    that op is named."""
    if suspect.op.type not in PRODUCTS:
        return _divided_by_infinity(suspect)
    for op in _behind(suspect):
        if suspect.type_of(op) in LOOPS and keeps_first_state(suspect, op):
            return Verdict("mask_multiplies_to_zero", "warning", first_of_loop(suspect, op))
        zeroed = _turns_zero(suspect, op)
        for rule in (
            (dead_relu, dead_relu_by_choice, dropped, masked, _left_out, _underflows, _divided_by_infinity)
            if zeroed is not None
            else ()
        ):
            verdict = rule(zeroed) if zeroed is not None else None
            if verdict is not None and verdict.cause == "dead_relu":
                return Verdict(verdict.cause, verdict.severity)
            if verdict is not None:
                return replace(verdict, culprit=verdict.culprit if verdict.culprit >= 0 else op)
    return None


def _left_out(suspect: Suspect) -> Verdict | None:
    """A `tf.where` that selected zeros."""
    return Verdict("branch_not_taken", "info") if suspect.op.type in CHOICES else None


def _underflows(suspect: Suspect) -> Verdict | None:
    """An exponential of large negative numbers."""
    return Verdict("zero_gradient", "warning") if suspect.op.type == "Exp" else None


_DIVISORS = {"Rsqrt": 0, "Reciprocal": 0, "Inv": 0, "RealDiv": 1, "Div": 1, "DivNoNan": 1}

_GROWING = frozenset({"Square", "SquaredDifference", "Mul", "Pow", "Exp"} | PRODUCTS)


def _divided_by_infinity(suspect: Suspect) -> Verdict | None:
    """A divisor, such as a variance, is infinite in half precision, and all that is divided by it is zero: the loss and
    its gradient remain finite. The nearest op that makes a number out of a smaller one is named."""
    place = _DIVISORS.get(suspect.op.type)
    if place is None or not is_half(suspect.op) or not suspect.measured.is_beyond(suspect.culprit, place):
        return None
    divisor = next((edge.op for edge in suspect.op.inputs if edge.input == place), -1)
    behind = [divisor, *suspect.topology.ancestors(divisor)] if divisor >= 0 else []
    grown = next(
        (op for op in behind if is_half(suspect.topology.trace.ops[op]) and suspect.type_of(op) in _GROWING),
        suspect.culprit,
    )
    return Verdict("fp16_overflow", "error", grown)


def _turns_zero(suspect: Suspect, op: int) -> Suspect | None:
    """An earlier op as a suspect, if the gradient becomes zero at it."""
    measured, target = suspect.measured, suspect.target
    incoming = measured.of_op(target, op)
    if incoming is None or is_zero(incoming):
        return None
    for edge in suspect.topology.trace.ops[op].inputs:
        outgoing = measured.of_op(target, edge.op) if edge.op >= 0 else None
        if outgoing is not None and is_zero(outgoing):
            return Suspect(measured, suspect.state, op, edge.op)
    return None


def _behind(suspect: Suspect) -> list[int]:
    """The ops that compute the other factor of a product, followed through ops that keep zeros."""
    others = (edge.op for edge in suspect.op.inputs if edge.op != suspect.producer)
    return [*suspect.topology.behind(others, PASSED_THROUGH | LISTS)]
