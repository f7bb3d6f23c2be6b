"""Which cause it is when the forward pass broke in front of the op at which the gradient did."""

from __future__ import annotations

from collections.abc import Sequence

from tb_gradflow.analyse.causes.not_finite.fp16_overflow import overflow_of_half
from tb_gradflow.analyse.causes.not_finite.singular import accused
from tb_gradflow.analyse.evidence.signs import relu_behind
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import passes_gradient
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology

# Finite themselves where their derivative is not. The others show it in their value, and so in the loss, unless
# something hides it there.
_FINITE_THERE = frozenset({"sqrt_at_zero", "pow_fraction_at_zero", "acos_at_one", "degenerate_decomposition"})

_SUMS = frozenset({"AddV2", "Add", "AddN", "Sub"})

_CHOICES = frozenset(
    {"Select", "SelectV2", "TensorScatterUpdate", "MatrixBandPart", "MatrixSetDiagV3", "While", "StatelessWhile"}
)

_MOVING = frozenset(
    {"Identity", "Cast", "Reshape", "Transpose", "Squeeze", "ExpandDims", "BroadcastTo", "Slice", "StridedSlice"}
    | {"Split", "SplitV", "Unpack", "GatherV2", "BiasAdd", "Mul", "RealDiv", "Maximum", "Minimum"}
)


def broken_before(suspect: Suspect) -> Verdict | None:
    """The nearest of those functions in front of the birthplace. One that a ReLU gives zeros is surer than any that
    only might be given some."""
    return suspect.measured.once(("broken", suspect.culprit), lambda: _broken_before(suspect))


def half_precision(suspect: Suspect) -> Verdict | None:
    """A number that is too large for half precision; unless something in front is given the zeros of a ReLU, which no
    precision would bear."""
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
    for op in suspect.topology.ancestors(suspect.culprit):
        verdict = accused(suspect, op) if guilty[op] else None
        if verdict is None or (verdict.cause == "softmax_all_masked" and not _takes_a_mask(suspect.topology, op)):
            continue
        if relu_behind(trace, op) >= 0:
            return verdict
        near = near or verdict
        if verdict.cause in _FINITE_THERE:
            found = found or verdict
    return (found or near) if is_whole else near


def _takes_a_mask(topology: Topology, softmax: int) -> bool:
    """Whether something can have masked a softmax's scores: a choice, or a sum with what is made of no variable. Scores
    straight from a layer hold no infinity, and the softmax only stands near what broke."""
    ops = topology.trace.ops
    passing = _MOVING | _SUMS | {ops[softmax].type}

    def before(op: int) -> Sequence[int]:
        return topology.sources(op) if ops[op].type in passing else ()

    for op in (softmax, *walked(topology.sources(softmax), before)):
        of_variables = [edge for edge in ops[op].inputs if edge.op >= 0 and topology.of_variables[edge.op]]
        if ops[op].type in _CHOICES or (ops[op].type in _SUMS and len(of_variables) < 2):
            return True
    return False


def _can_have_broken(suspect: Suspect) -> list[bool]:
    """For each op, whether anything that it hands back is not finite, or not known. Where all is finite the gradient
    did not break there, and with a finite loss the value did not either."""
    known, bad = suspect.measured.nonfinite_ops(suspect.target)
    arrives = suspect.topology.gradient(suspect.target).hops
    return [
        hops >= 0
        and any(not known[edge.op] or bad[edge.op] for edge in op.inputs if edge.op >= 0 and passes_gradient(edge))
        for op, hops in zip(suspect.topology.trace.ops, arrives, strict=True)
    ]
