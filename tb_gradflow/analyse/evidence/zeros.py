"""Values that are known to be zero in a step, because they are computed from variables that were zero at its start."""

from __future__ import annotations

from collections.abc import Callable

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.op_sets import FUSED_NORMALISERS, JOINS, QUOTIENTS, STRAIGHT, constant_of
from tb_gradflow.analyse.step.measured import UPDATE_NORM, WEIGHT_NORM, Measured
from tb_gradflow.record.schema import Op

Zero = frozenset[int] | None
"""The variables that make a value zero; None if it is not known to be zero."""

# These have a slope of zero at zero.
FLAT_AT_ZERO = frozenset({"Relu", "Relu6", "ReluN", "Square", "Abs", "Pow"})

PRODUCTS = frozenset(
    {"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Mul", "Einsum", "Conv1D", "Conv2D", "Conv3D"}
    | {"DepthwiseConv2dNative", "XlaDotV2", "Conv2DBackpropInput", "MulNoNan", "SparseTensorDenseMatMul"}
)
_SUMS = {"AddV2": 2, "Add": 2, "Sub": 2, "BiasAdd": 2}

# These map zero to zero.
_KEEPING = frozenset(
    {"Identity", "IdentityN", "Reshape", "Cast", "Transpose", "Squeeze", "ExpandDims", "Slice", "StridedSlice"}
    | {"Split", "SplitV", "Unpack", "GatherV2", "GatherNd", "Tile", "BroadcastTo", "Sum", "Mean", "Max", "Min"}
    | {"Neg", "Abs", "Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Tanh", "Sin", "Tan", "Asin", "Atan", "Sinh"}
    | {"Asinh", "Atanh", "Erf", "Softsign", "Square", "Sqrt", "Sign", "Expm1", "Log1p", "MaxPool", "AvgPool"}
    | {"SpaceToBatchND", "BatchToSpaceND", "ReverseV2", "Cumsum", "MatrixTranspose", "L2Loss", "StopGradient"}
)
# The same for ops whose first input does not matter: they scatter a gradient back to the positions of its tensor.
_KEEPING_AT = {"StridedSliceGrad": 4, "TanhGrad": 1, "SigmoidGrad": 1}


def zero_values(measured: Measured) -> list[Zero]:
    """For each op, the variables that make its first output zero. One sweep is enough, because ops are in order."""

    def sweep() -> list[Zero]:
        found: list[Zero] = []
        for op in measured.topology.trace.ops:
            found.append(_zero(measured, op, lambda place: found[place] if 0 <= place < len(found) else None))
        return found

    return measured.once("zero values", sweep)


def second_derivatives(measured: Measured) -> list[int]:
    """For each op, the op of an inner gradient whose derivative is zero and makes the op's first output zero; else -1.

    TensorFlow propagates a gradient of zeros through the slope of a ReLU, where it appears as a constant.
    """

    def sweep() -> list[int]:
        found: list[int] = []

        def known(place: int) -> Zero:
            return frozenset({found[place]}) if 0 <= place < len(found) and found[place] >= 0 else None

        for place, op in enumerate(measured.topology.trace.ops):
            zero: Zero = None
            if op.backward and op.type in STRAIGHT:
                given = next((edge.op for edge in op.inputs if edge.input == 0), -1)
                zero = frozenset({place}) if constant_of(op, 0) == 0 else known(given)
            elif op.reads is None:
                zero = _zero(measured, op, known)
            found.append(min(zero, default=-1) if zero is not None else -1)
        return found

    return measured.once("second derivatives", sweep)


def _zero(measured: Measured, op: Op, of: Callable[[int], Zero]) -> Zero:
    if op.reads is not None:
        return frozenset({op.reads}) if began_at_zero(measured, op.reads) else None
    given = {edge.input: of(edge.op) for edge in op.inputs}
    if op.type in PRODUCTS:
        return next((zero for zero in given.values() if zero is not None), None)
    if op.type in _KEEPING_AT:
        return given.get(_KEEPING_AT[op.type])
    if op.type in _KEEPING or op.type in QUOTIENTS:
        return given.get(min(given)) if given and (op.type not in QUOTIENTS or 0 in given) else None
    if op.type in _SUMS:
        given.update({side: frozenset() for side in range(_SUMS[op.type]) if constant_of(op, side) == 0})
        return _all(given, _SUMS[op.type])
    if op.type == "AddN":
        given.update({constant.input: frozenset() for constant in op.constants if constant.value == 0})
        return _all(given, op.input_count or len(op.inputs) + len(op.constants))
    if op.type in JOINS and op.input_count is not None:
        return _all(given, op.input_count - op.type.startswith("Concat"))
    return None


def _all(given: dict[int, Zero], count: int) -> Zero:
    zeros = [zero for zero in given.values() if zero is not None]
    return frozenset[int]().union(*zeros) if len(zeros) == count else None


def began_at_zero(measured: Measured, variable: int) -> bool:
    """The norm is measured after the step: if it equals the norm of the update, the variable was zero before."""
    if measured.variables is None or variable in measured.nonfinite_after:
        return False  # the norm is that of finite elements
    after, moved = (float(measured.variables[variable, column]) for column in (WEIGHT_NORM, UPDATE_NORM))
    return after == 0 or abs(after - moved) <= 1e-6 * after


def zero_factors(suspect: Suspect) -> frozenset[int]:
    """The variables that make zero what the suspect multiplies by, or its input if it is flat there."""
    zeros = zero_values(suspect.measured)
    if suspect.op.type in PRODUCTS:
        places = [edge.op for edge in suspect.op.inputs if edge.op >= 0 and edge.op != suspect.producer]
    elif suspect.op.type in FLAT_AT_ZERO:
        places = [suspect.producer] if suspect.producer >= 0 else []
    elif suspect.op.type in FUSED_NORMALISERS:
        places = [edge.op for edge in suspect.op.inputs if edge.input == 1]
    else:
        return frozenset()
    found = [zero for place in places if (zero := zeros[place]) is not None]
    return (found[0].union(*found) - {suspect.state.variable} or found[0]) if found else frozenset()
