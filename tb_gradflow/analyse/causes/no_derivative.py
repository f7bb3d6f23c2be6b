"""Cuts at ops that have no derivative, or none in the input that matters."""

from __future__ import annotations

import re

from tb_gradflow.analyse.evidence.suspects import Discrete, Suspect, Verdict, discrete_part
from tb_gradflow.analyse.evidence.zeros import PRODUCTS, second_derivatives
from tb_gradflow.analyse.graph.op_sets import COPIES, ROUTING, STRAIGHT, is_float

ROUNDING = frozenset({"Round", "Rint", "Floor", "Ceil", "FloorDiv", "TruncateDiv", "FloorMod", "TruncateMod"})
COMPARISON = frozenset(
    {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "ApproximateEqual"}
    | {"LogicalAnd", "LogicalOr", "LogicalNot", "All", "Any", "IsNan", "IsInf", "IsFinite"}
)
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
COUNTING_CALLS = ("count_nonzero", "bincount", "histogram", "unique_with_counts")
# Whole names: `categorical_accuracy` draws nothing, nor does the loss of that name.
_DISCRETE_DRAW = re.compile(
    r"(?<!\w)(?<!losses\.)(?:stateless_)?(?:categorical|multinomial|binomial|bernoulli|poisson)(?!\w)"
)
# By comparisons and in loops, where TensorFlow Probability has no op for it.
_OF_DISTRIBUTION = re.compile(r"tfd\.\w+\.sample")
_UNIFORM_DRAW = re.compile(r"random\.(?:stateless_)?uniform(?!\w)")
_REDUCTIONS = frozenset({"Sum", "Mean", "Max", "Min", "Prod", "SegmentSum", "UnsortedSegmentSum"})
INDEX_INPUTS = {
    "Gather": 1, "GatherV2": 1, "GatherNd": 1, "ResourceGather": 1, "ResourceGatherNd": 1, "OneHot": 0,
    "ScatterNd": 0, "TensorScatterUpdate": 1, "TensorScatterAdd": 1, "UnsortedSegmentSum": 1, "SegmentSum": 1,
    "StridedSlice": 1, "Slice": 1, "SparseSoftmaxCrossEntropyWithLogits": 1,
}  # fmt: skip
_BRANCHES = {
    "If": 0,
    "StatelessIf": 0,
    "Case": 0,
    "StatelessCase": 0,
    "While": 1,
    "StatelessWhile": 1,
    "Merge": 2,
    "Switch": 1,
    "RefSwitch": 1,
    "LoopCond": 0,
}


# These leave the numbers in a tensor as they are.
_REARRANGING = COPIES | ROUTING | {"Reshape", "Squeeze", "ExpandDims", "Transpose"}


def integer_variable(suspect: Suspect) -> Verdict | None:
    """The variable itself is an integer: the tape ignores it from the start."""
    variable = suspect.topology.trace.variables[suspect.state.variable]
    return None if is_float(variable.dtype) else Verdict("integer_dtype", "error")


def integer_source(suspect: Suspect) -> Verdict | None:
    """A gradient is requested for a tensor of integers, which has none.

    Information where the tensor only chooses among numbers that have one, as an index or a label does. An error where
    it is computed with: made a float, it would have a gradient. A loss of Keras makes floats of labels, and integers
    of these again: what counts is what takes them in the end.
    """
    topology, place = suspect.topology, suspect.state.variable
    queue = [taker for reader in topology.readers[place] for taker, _ in topology.consumers[reader]]
    if not queue:
        return Verdict("output_not_used", "error")
    choosing: list[int] = []
    computing: list[int] = []
    made_float: list[int] = []
    for op in queue:  # grows while it is walked
        of_float = any(edge.op in made_float for edge in topology.trace.ops[op].inputs)
        if not any(is_float(tensor.dtype) for tensor in topology.trace.ops[op].outputs):
            taken = topology.consumers[op]
        elif suspect.type_of(op) == "Cast" or (of_float and suspect.type_of(op) in _REARRANGING):
            made_float.append(op)
            taken = topology.consumers[op]
            if not taken:
                computing.append(op)  # the loss itself
        else:
            (computing if of_float else choosing).append(op)
            taken = []
        queue.extend(taker for taker, _ in taken if taker not in queue)
    if choosing and not computing:
        return Verdict("integer_dtype", "info", choosing[0])
    return Verdict("integer_dtype", "error", made_float[0] if made_float else queue[0])


def no_gradient_registered(suspect: Suspect) -> Verdict | None:
    """Asking for the gradient raises LookupError: the op type has no entry in the registry."""
    unregistered = any(edge.passes == "unregistered" for edge in suspect.edges)
    return Verdict("no_gradient_registered", "error") if unregistered else None


def second_order_missing(suspect: Suspect) -> Verdict | None:
    """The op was made by an inner gradient, of which the loss is made, and has no derivative itself."""
    return Verdict("second_order_missing", "error") if suspect.op.backward else None


def second_order_zero(suspect: Suspect) -> Verdict | None:
    """The derivative of a function made of straight pieces is constant on each: its own derivative is zero."""
    straight = suspect.op.backward and suspect.op.type in STRAIGHT
    return Verdict("second_order_missing", "error") if straight else None


def second_derivative_is_zero(suspect: Suspect) -> Verdict | None:
    """A product with the second derivative of such a function, which is zero."""
    if suspect.op.type not in PRODUCTS:
        return None
    zeros = second_derivatives(suspect.measured)
    factors = [edge.op for edge in suspect.op.inputs if edge.op >= 0 and edge.op != suspect.producer]
    origin = max((zeros[factor] for factor in factors), default=-1)
    return Verdict("second_order_missing", "error", origin) if origin >= 0 else None


def partly_cut(suspect: Suspect) -> Verdict | None:
    """A gradient arrives, and not all of it: the value also goes into an input for which TensorFlow has no derivative,
    of an op that has one for its others."""
    if suspect.target < 0:
        return None
    topology = suspect.topology
    places = suspect.measured.once(("partly cut", suspect.target), lambda: _inputs_without_gradient(suspect))
    for producer, op in places:
        if not (topology.made_by(producer) | {producer}).isdisjoint(topology.readers[suspect.state.variable]):
            return Verdict("nondiff_op_input", "info", op)
    return None


def _inputs_without_gradient(suspect: Suspect) -> list[tuple[int, int]]:
    topology, ops = suspect.topology, suspect.topology.trace.ops
    arrives = topology.gradient(suspect.target).hops
    return [
        (edge.op, place)
        for place, op in enumerate(ops)
        if arrives[place] >= 0 and op.differentiable and op.custom_gradient is None and not op.backward
        for edge in op.inputs
        if edge.passes == "none" and edge.op >= 0 and is_float(ops[edge.op].outputs[edge.output].dtype)
    ]


def raised_on_the_way(suspect: Suspect) -> Verdict | None:
    """Asking for the gradient raises at an op on the way, or on one of several: the tape asks it before whatever lies
    between it and the variable, and what cuts there is not got to."""
    topology, entry = suspect.topology, suspect.state.entry
    if entry is None or entry.outcome != "error":
        return None
    reached = topology.reached_from(topology.readers[suspect.state.variable])
    for crossing in topology.raising_crossings(suspect.target):
        if crossing.producer in reached:
            op = topology.trace.ops[crossing.consumer]
            missing = "second_order_missing" if op.backward else "no_gradient_registered"
            own = op.custom_gradient and crossing.edge.passes == "error"
            return Verdict("custom_gradient_wrong" if own else missing, "error", crossing.consumer)
    return None


def predicate_only(suspect: Suspect) -> Verdict | None:
    """A comparison, and all it does is choose the branch of a `tf.cond` or end a `tf.while_loop`."""
    uses = discrete_part(suspect).uses
    chooses = uses and all(_BRANCHES.get(suspect.type_of(use.consumer)) == use.input for use in uses)
    return Verdict("predicate_only", "error") if chooses else None


def nondiff_counting(suspect: Suspect) -> Verdict | None:
    """Something is counted: a histogram, or a comparison whose ones and zeros are summed and nothing else."""
    called = suspect.op.api or ""
    if suspect.op.type in COUNTING or any(word in called for word in COUNTING_CALLS):
        return Verdict("nondiff_counting", "error")
    uses = discrete_part(suspect).uses
    summed = uses and all(_is_summed_truth(suspect, use.consumer, use.via) for use in uses)
    return Verdict("nondiff_counting", "error") if summed else None


def _is_summed_truth(suspect: Suspect, cast: int, comparison: int) -> bool:
    topology = suspect.topology
    influence = topology.influence(suspect.target).hops
    users = [consumer for consumer, _ in topology.consumers[cast] if influence[consumer] >= 0]
    return (
        suspect.type_of(cast) == "Cast"
        and suspect.type_of(comparison) in COMPARISON
        and bool(users)
        and all(suspect.type_of(user) in _REDUCTIONS for user in users)
    )


def nondiff_sampling(suspect: Suspect) -> Verdict | None:
    """A discrete random draw: from a categorical distribution or another one of which a sample has no derivative, or by
    comparing with uniform noise."""
    called = suspect.op.api or ""
    if suspect.op.type in SAMPLING or _DISCRETE_DRAW.search(called) or _OF_DISTRIBUTION.fullmatch(called):
        return Verdict("nondiff_sampling", "error")
    source = suspect.op.source
    code = suspect.topology.trace.sources[source].code if source is not None else ""
    drawn = suspect.op.type in COMPARISON and (_DISCRETE_DRAW.search(code) or _UNIFORM_DRAW.search(code))
    return Verdict("nondiff_sampling", "error") if drawn else None


def nondiff_index(suspect: Suspect) -> Verdict | None:
    """A position is searched, or a number made an integer to index with."""
    if suspect.op.type in SEARCHING:
        return Verdict("nondiff_index", "error")
    part = discrete_part(suspect)
    handed = _handed_on(suspect, part)
    indexes = any(
        INDEX_INPUTS.get(suspect.type_of(use.consumer)) == use.input for use in part.uses if use.via in handed
    )
    return Verdict("nondiff_index", "error") if indexes else None


def _handed_on(suspect: Suspect, part: Discrete) -> set[int]:
    """The ops of a part that hold the value itself and no truth about it: a position is indexed with all the same where
    it is compared with zero before, as Keras does to count negative ones from the end."""
    inside = {op for op in part.ops if suspect.type_of(op) not in COMPARISON}
    handed = {suspect.culprit} & inside
    for op in part.ops:  # each stands behind one that it follows
        if op in handed:
            handed.update(user for user, _ in suspect.topology.consumers[op] if user in inside)
    return handed


def nondiff_rounding(suspect: Suspect) -> Verdict | None:
    """Rounding: its registered gradient is None."""
    return Verdict("nondiff_rounding", "error") if suspect.op.type in ROUNDING else None


def nondiff_comparison(suspect: Suspect) -> Verdict | None:
    """A comparison, or integers or positions that are made for nothing but one (`tf.sequence_mask`)."""
    if suspect.op.type in COMPARISON:
        return Verdict("nondiff_comparison", "error")
    part = discrete_part(suspect)
    compared = -1 if _is_computed_with(suspect, part) else _first(suspect, part, COMPARISON)
    integers = bool(suspect.op.outputs) and not any(is_float(tensor.dtype) for tensor in suspect.op.outputs)
    prepares = suspect.op.type == "Range" or (integers and suspect.op.type in ("Cast", "Max", "Min"))
    return Verdict("nondiff_comparison", "error", compared) if prepares and compared >= 0 else None


def _is_computed_with(suspect: Suspect, part: Discrete) -> bool:
    """Whether the value itself, and not only what it is compared to, is made a floating number again."""
    handed = _handed_on(suspect, part)
    return any(use.via in handed and suspect.type_of(use.consumer) == "Cast" for use in part.uses)


def _first(suspect: Suspect, part: Discrete, types: frozenset[str]) -> int:
    return next((op for op in part.ops if suspect.type_of(op) in types), -1)


def integer_path(suspect: Suspect) -> Verdict | None:
    """A cast to integers on the way."""
    outputs = suspect.op.outputs
    discrete = bool(outputs) and not any(is_float(tensor.dtype) for tensor in outputs)
    return Verdict("integer_dtype", "error") if suspect.op.type == "Cast" and discrete else None


def custom_gradient_wrong(suspect: Suspect) -> Verdict | None:
    """A gradient function of the user's own returns None, or raises, for this input."""
    # A tape takes no notice of `gradient_override_map`, and then the op is cut for reasons of its own.
    written = any(check.op == suspect.culprit for check in suspect.topology.trace.gradient_checks)
    own = suspect.op.custom_gradient and (suspect.op.type == "IdentityN" or written)
    return Verdict("custom_gradient_wrong", "error") if own else None


def nondiff_op_input(suspect: Suspect) -> Verdict | None:
    """The op has a gradient, for other inputs than this one."""
    others = suspect.op.differentiable or any(edge.passes == "yes" for edge in suspect.op.inputs)
    for_others = any(edge.passes == "none" and (others or edge.input > 0) for edge in suspect.edges)
    return Verdict("nondiff_op_input", "error") if for_others else None


def range_without_gradient(suspect: Suspect) -> Verdict | None:
    """The ends of the range that a value is quantised in: TensorFlow's gradient for them is always zero, in and outside
    of it, other than that of its fake quantisers (`QuantizeAndDequantizeV4GradientOp`)."""
    ends = suspect.op.type.startswith("QuantizeAndDequantize") and all(edge.input in (1, 2) for edge in suspect.edges)
    return Verdict("nondiff_op_input", "error") if ends else None


def nondiff_op(suspect: Suspect) -> Verdict | None:
    """Whatever else cuts: the op is named, so that a cut always is."""
    return Verdict("nondiff_op", "error")


def nondiff_sign(suspect: Suspect) -> Verdict | None:
    """Sign: its registered gradient is all zeros."""
    return Verdict("nondiff_sign", "error") if suspect.op.type == "Sign" else None
