"""The gradient falls below the smallest float16."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.fields import ZERO, Template

# Half precision has no number between zero and 6e-8; a single op does not shrink a gradient above this limit to zero.
_HALF_AT_RISK_BELOW = 1e-3

_SMALLEST_HALF = 6e-8


def rule(suspect: Suspect) -> Verdict | None:
    """A gradient below the smallest number in half precision."""
    return Verdict("fp16_underflow", "error") if _is_small_half(suspect, _HALF_AT_RISK_BELOW) else None


def fp16_flush(suspect: Suspect) -> Verdict | None:
    """A gradient that half precision cannot hold at all."""
    return Verdict("fp16_underflow", "error") if _is_small_half(suspect, _SMALLEST_HALF) else None


def _is_small_half(suspect: Suspect, limit: float) -> bool:
    ops = suspect.topology.trace.ops
    places = [suspect.culprit, *([suspect.producer] if suspect.producer >= 0 else [])]
    half = any(tensor.dtype == "float16" for place in places for tensor in ops[place].outputs)
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    return half and incoming is not None and 0 < incoming.max_abs < limit


CAUSE = Cause(
    name="fp16_underflow",
    meaning="the gradient becomes zero in float16, from a gradient below 1e-3",
    severity="error",
    fix="scale the loss",
    text=Template(
        ZERO + "it underflows at {op}, below the smallest float16 value, 6e-8.",
        "Scale the loss: `keras.optimizers.LossScaleOptimizer(optimizer)`, or use `mixed_bfloat16`.",
    ),
)
