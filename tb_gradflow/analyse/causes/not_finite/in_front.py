"""Which cause it is when the forward pass broke before the op at which the gradient did: judged by measured forward
values, or otherwise by the ops that may have broken."""

from __future__ import annotations

from tb_gradflow.analyse.causes.not_finite.fp16_overflow import overflow_of_half
from tb_gradflow.analyse.causes.not_finite.singular import CAUSE_OF_TYPE, accused
from tb_gradflow.analyse.evidence.signs import relu_behind
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import SUMS, passes_gradient
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.birth import Values, birth_before, birth_of, is_infinite, is_nan, values_of
from tb_gradflow.record.schema import OpValue

# Their value is finite where their derivative is not. The others show the problem in their value, and so in the loss,
# unless something hides it there.
_FINITE_THERE = frozenset({"sqrt_at_zero", "pow_fraction_at_zero", "acos_at_one", "degenerate_decomposition"})


_CHOICES = frozenset(
    {"Select", "SelectV2", "TensorScatterUpdate", "MatrixBandPart", "MatrixSetDiagV3", "While", "StatelessWhile"}
)

_MOVING = frozenset(
    {"Identity", "Cast", "Reshape", "Transpose", "Squeeze", "ExpandDims", "BroadcastTo", "Slice", "StridedSlice"}
    | {"Split", "SplitV", "Unpack", "GatherV2", "BiasAdd", "Mul", "RealDiv", "Maximum", "Minimum"}
)


_DIVISIONS = {"RealDiv": 1, "Div": 1, "Reciprocal": 0, "Inv": 0, "Xdivy": 1}


def broken_before(suspect: Suspect) -> Verdict | None:
    """The nearest of these functions before the birthplace. One that gets zeros from a ReLU is more certain than one
    that only might get zeros."""
    return suspect.measured.once(("broken", suspect.culprit), lambda: _broken_before(suspect))


def half_precision(suspect: Suspect) -> Verdict | None:
    """A number that is too large for half precision; unless an earlier op gets the zeros of a ReLU, which are a problem
    in every precision."""
    verdict = overflow_of_half(suspect)
    if verdict is None or suspect.measured.loss_is_finite(suspect.target):
        return verdict
    before = broken_before(suspect)
    return before if before is not None and relu_behind(suspect.topology.trace, before.culprit) >= 0 else verdict


def _broken_before(suspect: Suspect) -> Verdict | None:
    trace = suspect.topology.trace
    is_whole = suspect.measured.loss_is_finite(suspect.target)
    guilty = _can_have_broken(suspect) if is_whole else [True] * len(trace.ops)
    near, found = None, None
    behind = _behind_other_factor(suspect)
    for op in suspect.topology.ancestors(suspect.culprit):
        verdict = accused(suspect, op) if guilty[op] and (behind is None or op in behind) else None
        if verdict is None or (verdict.cause == "softmax_all_masked" and not _takes_a_mask(suspect.topology, op)):
            continue
        if relu_behind(trace, op) >= 0:
            return verdict
        near = near or verdict
        if verdict.cause in _FINITE_THERE:
            found = found or verdict
    return (found or near) if is_whole else near


def _behind_other_factor(suspect: Suspect) -> set[int] | None:
    """If a finite gradient arrives at a product and one with NaN leaves it toward a factor, it is the other factor that
    is not finite: what that is computed from. `None` where this does not hold."""
    measured, target = suspect.measured, suspect.target
    incoming, factors = measured.of_op(target, suspect.culprit), {edge.op for edge in suspect.op.inputs if edge.op >= 0}
    if suspect.op.type != "Mul" or incoming is None or incoming.nan_count or incoming.inf_count:
        return None
    broken = {op for op in factors if (gradient := measured.of_op(target, op)) is not None and gradient.nan_count}
    if len(broken) != 1:
        return None
    return set(walked(factors - broken, suspect.topology.sources))


def _takes_a_mask(topology: Topology, softmax: int) -> bool:
    """Whether a softmax's scores can have been masked: by a choice, or by a sum with a value that depends on no
    variable. Scores directly from a layer contain no infinity, and then the softmax is only near the op that broke."""
    ops = topology.trace.ops
    passing = _MOVING | SUMS | {ops[softmax].type}
    for op in (softmax, *topology.behind(topology.sources(softmax), passing)):
        of_variables = [edge for edge in ops[op].inputs if edge.op >= 0 and topology.of_variables[edge.op]]
        if ops[op].type in _CHOICES or (ops[op].type in SUMS and len(of_variables) < 2):
            return True
    return False


def _can_have_broken(suspect: Suspect) -> list[bool]:
    """For each op, whether any of its results is not finite, or not known. If all are finite, the gradient did not
    break there, and with a finite loss the value did not either."""
    known, bad = suspect.measured.nonfinite_ops(suspect.target)
    arrives = suspect.topology.gradient(suspect.target).hops
    return [
        hops >= 0
        and any(not known[edge.op] or bad[edge.op] for edge in op.inputs if edge.op >= 0 and passes_gradient(edge))
        for op, hops in zip(suspect.topology.trace.ops, arrives, strict=True)
    ]


def singular_first(suspect: Suspect) -> Verdict | None:
    """A function with a singular point, whose input is at that point."""
    op = first_of(suspect)
    if op < 0:
        return None
    cause = suspect.measured.once(("cause of birth", op), lambda: _cause(suspect, op))
    return Verdict(cause, "error", op) if cause else None


def undefined_first(suspect: Suspect) -> Verdict | None:
    """Intended infinities from which an op computes NaN: zero times infinity, infinity minus infinity."""
    op, values = first_of(suspect), values_of(suspect.measured)
    if op < 0 or values is None or not any(map(is_nan, values.outputs(op))):
        return None
    return Verdict("not_finite", "error", op) if any(map(is_infinite, values.inputs(op))) else None


def given_first(suspect: Suspect) -> Verdict | None:
    """NaN in data that is not an argument of the step."""
    measured = suspect.measured
    birth, values = birth_of(measured, suspect.target), values_of(measured)
    if birth is None or values is None or not birth.given or measured.nonfinite_inputs:
        return None
    is_data = any(map(is_nan, values.given(birth.op))) and not measured.nonfinite_weights(suspect.target)
    return Verdict("nonfinite_input", "error", birth.op) if is_data else None


def first_of(suspect: Suspect) -> int:
    """The op that was measured to break; -1 if there is none."""
    measured = suspect.measured
    whole = measured.loss_is_finite(suspect.target)
    birth = birth_before(measured, suspect.culprit) if whole else birth_of(measured, suspect.target)
    return -1 if birth is None or birth.given or birth.inside else birth.op


def _values(suspect: Suspect) -> Values:
    values = values_of(suspect.measured)
    assert values is not None
    return values


def _cause(suspect: Suspect, op: int) -> str:
    """Empty if none of its inputs is at a singular point of such an op."""
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
