"""How far two runs of one program may differ by rounding alone.

A step computes along paths of ops. If each op rounds by at most `u`, the unit roundoff of its type, a path of `n` ops
is off by at most `n u`, and by about `sqrt(n) u` if the errors are independent (Higham and Mary 2019, "A new approach
to probabilistic rounding error analysis"). XLA, another device and another version of a kernel change the order of
sums, and so these errors. The first step is allowed `FACTOR sqrt(n) u`, relative to the size of each value.

From step to step the difference grows, because each step starts from the weights of the one before and adds its own
rounding: in proportion to the number of steps, and faster where a training amplifies it. So it is measured: a step may
differ by what the last one that both have recorded differs, times `GROWTH`, times the number of steps since then. A
cause that begins later shows as a jump. With XLA and without, gradients of a CNN, a perceptron and a transformer
differed by 4e-7 to 1e-5 in the first step and by up to 1e-4 after 100 steps of Adam, where 20 steps multiplied a
difference by 5 to 20.
"""

from __future__ import annotations

import math

from tb_gradflow.analyse.divergence.structure import depth_of
from tb_gradflow.record.schema import Trace

UNIT_ROUNDOFF = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "complex64": 2.0**-24,
    "complex128": 2.0**-53,
}
"""Half the distance from 1 to the next number."""

FACTOR = 16.0
"""Kernels that sum thousands of products are less exact than one rounding."""

GROWTH = 4.0

RECORDED = 2.0**-20
"""Values that are not computed in the step, such as the batch and initial weights: only the sums of their statistics
round, and these are stored as float32."""


def tolerance(a: Trace, b: Trace) -> float:
    """The relative difference that the first step of two traces may have. If one of them computes in a less exact type,
    that is a difference, and not rounding."""
    depth = max(depth_of(trace.ops) for trace in (a, b))
    return FACTOR * math.sqrt(depth) * min(unit_roundoff(trace) for trace in (a, b))


def unit_roundoff(trace: Trace) -> float:
    """That of the least exact floating type in a trace. Losses and statistics are recorded as float32."""
    types = {output.dtype for op in trace.ops for output in op.outputs} | {each.dtype for each in trace.variables}
    return max((UNIT_ROUNDOFF[each] for each in types if each in UNIT_ROUNDOFF), default=0.0) or 2.0**-24


def allowed_after(first: float, before: float, gap: int) -> float:
    """The relative difference that a step may have, `gap` steps after one that differs by `before`."""
    return max(first, before) * GROWTH * gap
