"""Which cause it is where the forward pass was measured: the first op whose value is not finite is to blame."""

from __future__ import annotations

from tb_gradflow.analyse.causes.not_finite.singular import CAUSE_OF_TYPE
from tb_gradflow.analyse.evidence.birth import Values, birth_before, birth_of, values_of
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.record.schema import OpValue

_DIVISIONS = {"RealDiv": 1, "Div": 1, "Reciprocal": 0, "Inv": 0, "Xdivy": 1}


def singular_first(suspect: Suspect) -> Verdict | None:
    """A function that leaves the finite numbers at a point of its own, and was given that point."""
    op = first_of(suspect)
    if op < 0:
        return None
    cause = suspect.measured.once(("cause of birth", op), lambda: _cause(suspect, op))
    return Verdict(cause, "error", op) if cause else None


def first_of(suspect: Suspect) -> int:
    """The op that was seen to break; -1 where none was."""
    measured = suspect.measured
    whole = measured.loss_is_finite(suspect.target)
    birth = birth_before(measured, suspect.culprit) if whole else birth_of(measured, suspect.target)
    return -1 if birth is None or birth.given or birth.inside else birth.op


def _values(suspect: Suspect) -> Values:
    values = values_of(suspect.measured)
    assert values is not None
    return values


def _cause(suspect: Suspect, op: int) -> str:
    """Empty where no value that it was given is a point at which such an op leaves the finite numbers."""
    kind, values = suspect.type_of(op), _values(suspect)
    cause = CAUSE_OF_TYPE.get(kind, "")
    if kind == "Mean" and any(0 in value.shape for value in _inputs(values, op)):
        return "zero_over_zero"
    if kind in _DIVISIONS:
        divisor = values.given_to(op, _DIVISIONS[kind])
        cause = "zero_over_zero" if divisor is None or divisor.zeros else ""
    if cause == "pow_fraction_at_zero":
        base = values.given_to(op, 0)
        cause = cause if base is None or base.zeros or base.negative else ""
    if not cause and any(tensor.dtype == "float16" for tensor in suspect.topology.trace.ops[op].outputs):
        return "fp16_overflow"
    return cause


def _inputs(values: Values, op: int) -> list[OpValue]:
    return [value for place in range(2) if (value := values.given_to(op, place)) is not None]
