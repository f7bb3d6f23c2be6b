"""Types of ops that have no derivative, by purpose."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Discrete, Suspect, discrete_part
from tb_gradflow.analyse.graph.op_sets import COPIES, LIMITS

REMAINDERS = frozenset({"FloorMod", "TruncateMod"})
ROUNDING = REMAINDERS | {"Round", "Rint", "Floor", "Ceil", "FloorDiv", "TruncateDiv"}

_LOGIC = frozenset({"LogicalAnd", "LogicalOr", "LogicalNot", "All", "Any"})
COMPARISON = _LOGIC | {
    "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "ApproximateEqual",
    "IsNan", "IsInf", "IsFinite",
}  # fmt: skip

SEARCHING = frozenset(
    {
        "MaxPoolWithArgmax",
        "ArgMax",
        "ArgMin",
        "TopK",
        "TopKV2",
        "ApproxTopK",
        "Where",
        "LowerBound",
        "UpperBound",
        "Bucketize",
    }
    | {"InTopK", "InTopKV2", "Unique", "UniqueV2", "InvertPermutation", "NearestNeighbors"}
    | {"NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5"}
    | {"CombinedNonMaxSuppression", "NonMaxSuppressionWithOverlaps"}
)

COUNTING = frozenset(
    {"HistogramFixedWidth", "Bincount", "DenseBincount", "RaggedBincount", "UniqueWithCounts", "UniqueWithCountsV2"}
)

SAMPLING = frozenset(
    {"Multinomial", "StatelessMultinomial", "StatelessRandomBinomial", "RandomPoisson", "RandomPoissonV2"}
    | {"StatelessRandomPoisson", "LearnedUnigramCandidateSampler"}
)

COUNTING_CALLS = ("count_nonzero", "zero_fraction", "bincount", "histogram", "unique_with_counts")

INDEX_INPUTS = {
    "Gather": 1, "GatherV2": 1, "GatherNd": 1, "ResourceGather": 1, "ResourceGatherNd": 1, "OneHot": 0,
    "ScatterNd": 0, "TensorScatterUpdate": 1, "TensorScatterAdd": 1, "UnsortedSegmentSum": 1, "SegmentSum": 1,
    "StridedSlice": 1, "Slice": 1, "SparseSoftmaxCrossEntropyWithLogits": 1,
}  # fmt: skip


_MOVING = COPIES | {"Reshape", "Squeeze", "ExpandDims"}
_KEEPING_ONE_HOT = _MOVING | {"GatherV2", "Sum", "RealDiv"}


def is_at_limits_of_logarithm(suspect: Suspect, op: int) -> bool:
    """Whether the values of an op are all clipped in front of a logarithm, as a cross-entropy of Keras clips its
    probabilities: the slope is zero at whole numbers. One-hot vectors stay whole where each is divided by its sum.
    """
    topology, types = suspect.topology, [each.type for each in suspect.topology.trace.ops]
    moving = _KEEPING_ONE_HOT if types[op] == "OneHot" else _MOVING
    met = [op]
    for each in met:  # grows while it is walked
        onward = topology.onward(each)
        if not onward or any(types[user] not in moving | LIMITS for user in onward):
            return False
        met += [user for user in onward if types[user] not in LIMITS and user not in met]
    limits = {user for each in met for user in topology.onward(each) if types[user] in LIMITS}
    behind = {user for each in limits for user in topology.onward(each)}
    behind |= {user for each in behind if types[each] in LIMITS | {"Sub"} for user in topology.onward(each)}
    return any(types[each] in ("Log", "Log1p") for each in behind)


def handed_on(suspect: Suspect, part: Discrete) -> set[int]:
    """The ops of a part that return the value itself, not the result of a comparison. A position is still an index if
    it is first compared with zero, as Keras does for negative indices."""
    inside = {op for op in part.ops if suspect.type_of(op) not in COMPARISON}
    handed = {suspect.culprit} & inside
    for op in part.ops:  # each follows its producer
        if op in handed:
            handed.update(user for user, _ in suspect.topology.consumers[op] if user in inside)
    return handed


def is_compared_again(suspect: Suspect) -> bool:
    """Whether what a comparison gives is compared once more, in another line: a decision with its label. A soft step
    would end at the second comparison."""
    ops = suspect.topology.trace.ops
    later = [ops[op] for op in discrete_part(suspect).ops if ops[op].source != suspect.op.source]
    return suspect.op.type in COMPARISON and any(op.type in COMPARISON - _LOGIC for op in later)


def are_probabilities(suspect: Suspect) -> bool:
    """Whether the value in which an op searches is the result of a softmax already."""
    edge = next((each for each in suspect.op.inputs if each.input == 0 and each.op >= 0), None)
    return edge is not None and suspect.type_of(edge.op) == "Softmax"
