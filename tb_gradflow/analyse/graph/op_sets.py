"""The kinds of ops and edges that several rules need."""

from __future__ import annotations

from tb_gradflow.record.schema import Edge, Op, Tensor, Trace

# These read shapes and types, never values: the value of a variable does not influence what follows them.
SHAPE_ONLY = frozenset(
    {"Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike", "VariableShape", "TensorListLength"}
)


# These join tensors or select parts of them, and compute nothing.
ROUTING = frozenset(
    {"ConcatV2", "Concat", "Pack", "Unpack", "Slice", "StridedSlice", "Split", "SplitV", "GatherV2", "GatherNd", "Pad"}
    | {"PadV2", "BroadcastTo", "Tile"}
)


# These select parts of a tensor, possibly none.
SELECTING = frozenset({"Slice", "StridedSlice", "GatherV2", "GatherNd", "ResourceGather", "DynamicPartition"})


# These take the value of one of several branches, for the whole tensor or for each element.
BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase", "Select", "SelectV2", "Merge", "Switch"})


# The derivatives of piecewise linear functions: their own derivative is zero.
STRAIGHT = frozenset({"ReluGrad", "Relu6Grad", "LeakyReluGrad", "ReluNGrad"})


LOOPS = frozenset({"While", "StatelessWhile"})


SOFTMAX_LOSS = "SoftmaxCrossEntropyWithLogits"
SOFTMAX = ("Softmax", "LogSoftmax", SOFTMAX_LOSS, "SparseSoftmaxCrossEntropyWithLogits")


SATURABLE = frozenset({"Sigmoid", "Tanh", "Softmax", "LogSoftmax"})
"""Functions that are flat for large inputs."""


# `unknown` gets the benefit of the doubt: an edge that was not examined must not become a cut.
_PASSING = frozenset({"yes", "unknown"})


COPIES = frozenset({"ReadVariableOp", "Identity", "IdentityN", "NoOp"})


DIVISIONS = {"RealDiv": 1, "Div": 1, "Reciprocal": 0, "Xdivy": 1}
"""The index of the input that is the divisor."""


SINGULAR_INPUT = DIVISIONS | {
    "Log": 0, "Sqrt": 0, "Rsqrt": 0, "Xlogy": 1, "Pow": 0, "Exp": 0, "Expm1": 0, "Cosh": 0, "Sinh": 0, "Log1p": 0,
    "Acos": 0, "Asin": 0, "Atanh": 0, "Acosh": 0,
}  # fmt: skip
"""The index of the input that decides whether a function, or its slope, is finite."""


MASKS = frozenset({"AddV2", "Add", "Sub", "Select", "SelectV2"})
"""What a mask in front of a softmax is written with."""


SAME_ELEMENTS = frozenset({"Cast", "ExpandDims", "Identity", "Reshape", "Squeeze", "Transpose"})
"""These return the elements of a tensor, perhaps in another shape, order or type."""


SAME_VALUES = frozenset({"Cast", "ExpandDims", "Identity", "Reshape", "Squeeze"})
"""The same, in the same order."""


SUMS_OF_TWO = frozenset({"Add", "AddV2", "Sub"})
"""Sums and differences of two values."""


OFFSETS = frozenset({"Add", "AddV2", "BiasAdd"})
"""Sums with which an offset may be added."""


SHIFTS = frozenset({"Add", "AddV2", "BiasAdd", "Sub"})
"""The same, and differences."""


ADDITIONS = frozenset({"Add", "AddN", "AddV2"})
"""Sums of any number of values."""


SUMS = frozenset({"Add", "AddN", "AddV2", "Sub"})
"""The same, and differences."""


CHOICES = frozenset({"Select", "SelectV2"})
"""These take each element from one of two values."""


QUOTIENTS = frozenset({"Div", "DivNoNan", "RealDiv"})


CLIPS = frozenset({"ClipByValue", "Maximum", "Minimum"})


SLICES = frozenset({"Slice", "StridedSlice"})


PYTHON_CALLS = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})
"""These run Python code in a step."""


LOOKUPS = frozenset({"GatherV2", "ResourceGather"})
"""These take rows of a table."""


MEANS = frozenset({"Mean", "Sum"})
"""Over some axes."""


FUSED_NORMALISERS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


RELUS = frozenset({"Relu", "Relu6"})


ROWS = frozenset({"GatherNd", "GatherV2", "Slice", "StridedSlice"})
"""These take a part of a tensor, such as some of its rows."""


LESS = frozenset({"Less", "LessEqual"})


LIMITS = frozenset({"Maximum", "Minimum"})


JOINS = frozenset({"Concat", "ConcatV2", "Pack"})


OVERFLOWING = ("Exp", "Expm1", "Cosh", "Sinh")
"""These are infinite for inputs that are not."""


def is_half(op: Op) -> bool:
    """Whether a result of the op is a float16."""
    return any(tensor.dtype == "float16" for tensor in op.outputs)


def scopes_of(name: str) -> list[str]:
    """The name scopes around an op, the innermost first."""
    found = []
    while name := name.rpartition("/")[0]:
        found.append(name)
    return found


def tensor_of(trace: Trace, edge: Edge) -> Tensor | None:
    """The tensor of an edge; `None` if its op was left out, and for the state of a variable, which is no tensor."""
    outputs = trace.ops[edge.op].outputs if edge.op >= 0 else ()
    return outputs[edge.output] if edge.output < len(outputs) else None


def shape_along(trace: Trace, edge: Edge) -> tuple[int, ...] | None:
    """The shape of that tensor; `None` if it is not known."""
    tensor = tensor_of(trace, edge)
    return None if tensor is None else tensor.shape


def is_without_elements(trace: Trace, edge: Edge) -> bool:
    """Whether the tensor of an edge is known to be empty."""
    return 0 in (shape_along(trace, edge) or ())


def passes_gradient(edge: Edge) -> bool:
    """Whether the gradient passes the edge, as far as is known."""
    return edge.passes in _PASSING


def is_of_a_dataset(op: Op) -> bool:
    """Whether an op belongs to `tf.data`, whose functions compute outside of the graph that a gradient is taken of."""
    return op.type.endswith(("Dataset", "DatasetV2", "DatasetV3"))


def is_float(dtype: str) -> bool:
    """Whether the tape follows tensors of this type."""
    return dtype.startswith(("float", "bfloat", "complex", "half", "resource", "variant"))


def constant_of(op: Op, place: int) -> float | None:
    """The value of an input that is a constant; None if it is something else."""
    return next((constant.value for constant in op.constants if constant.input == place), None)


def limits_exchanged(trace: Trace, op: int) -> tuple[float, float] | None:
    """The lower and the upper limit of a clip if the lower one is greater, so that its output is constant; `None` for
    any other op. TensorFlow computes a clip as a minimum and then a maximum of that."""
    if op < 0:
        return None
    clip = trace.ops[op]
    if clip.type == "ClipByValue":
        low, high = constant_of(clip, 1), constant_of(clip, 2)
    else:
        inner = next((trace.ops[edge.op] for edge in clip.inputs if edge.op >= 0), None)
        if inner is None or inner.source != clip.source or {clip.type, inner.type} != {"Minimum", "Maximum"}:
            return None
        sides = {each.type: [constant_of(each, 0), constant_of(each, 1)] for each in (clip, inner)}
        low, high = (next((each for each in sides[kind] if each is not None), None) for kind in ("Maximum", "Minimum"))
    return (low, high) if low is not None and high is not None and low > high else None


def is_square(trace: Trace, op: int) -> bool:
    """Whether an op squares something; `tf.norm` multiplies it by itself."""
    given = [edge.op for edge in trace.ops[op].inputs] if op >= 0 else []
    return bool(given) and (
        trace.ops[op].type == "Square" or (trace.ops[op].type == "Mul" and given[0] >= 0 and given == [given[0]] * 2)
    )


def has_single_class(op: Op) -> bool:
    """Whether it is a softmax, or a loss with one inside, over an axis of length one."""
    sizes = op.outputs[-1].shape if op.outputs else None
    return op.type in SOFTMAX and bool(sizes) and sizes is not None and sizes[-1] == 1
