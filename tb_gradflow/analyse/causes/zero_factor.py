"""Gradients that are exactly zero because something is multiplied with zeros: dead units, zero weights."""

from __future__ import annotations

from dataclasses import replace

from tb_gradflow.analyse.causes.goal import is_at_goal, is_last
from tb_gradflow.analyse.causes.masked import masked
from tb_gradflow.analyse.causes.zero import BRANCHES
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import FLAT_AT_ZERO, PRODUCTS, zero_values
from tb_gradflow.analyse.graph.op_sets import LOOPS, constant_of
from tb_gradflow.analyse.step.measured import VANISHING_BELOW, is_zero

_RELU = frozenset({"Relu", "Relu6", "ReluN"})
_SELECTING = frozenset({"Select", "SelectV2"})
# Zeros stay zeros through these; and a product has zeros where one factor has.
_PASSED_THROUGH = frozenset(
    {"Identity", "Reshape", "Cast", "Transpose", "Squeeze", "ExpandDims", "MaxPool", "AvgPool", "Mul", "Sum"}
    | {"SelectV2", "SpaceToBatchND", "BatchToSpaceND", "ConcatV2", "Mean", "Max", "StridedSlice", "Slice", "GatherV2"}
    | {"ReverseV2", "Tile", "BroadcastTo", "Pack"}
)

# What the rounds of a loop make is collected in a list.
_LISTS = frozenset({"TensorListStack", "TensorListGetItem", "TensorListSetItem", "TensorListFromTensor"})

_FUSED_NORMALISERS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


def dead_relu(suspect: Suspect) -> Verdict | None:
    """A ReLU that no input of this step activates.

    Of two that share a value between them, such as a PReLU's, one is always zero.
    """
    if suspect.op.type not in _RELU:
        return None
    if _is_other_half(suspect):
        return Verdict("branch_not_taken", "info", suspect.culprit)
    if is_at_goal(suspect) and is_last(suspect.topology, suspect.target, suspect.culprit):
        return Verdict("saturation_clip", "info")  # a margin, and no unit: nothing is made of what it lets through
    return Verdict("dead_relu", "error")


def dead_relu_by_choice(suspect: Suspect) -> Verdict | None:
    """The same with a threshold of its own, which Keras writes as a choice between the value and zero."""
    by_choice = suspect.op.type in BRANCHES and (suspect.op.api or "").rpartition(".")[2] == "relu"
    return Verdict("dead_relu", "error") if by_choice else None


def _is_other_half(suspect: Suspect) -> bool:
    """Whether the ReLU is given the negative of what another one is given."""
    topology, ops = suspect.topology, suspect.topology.trace.ops
    given = [edge.op for edge in suspect.op.inputs if edge.op >= 0]
    turned = [edge.op for op in given if ops[op].type == "Neg" for edge in ops[op].inputs if edge.op >= 0]
    behind = [op for op in given if ops[op].type != "Neg" for op, _ in topology.consumers[op] if ops[op].type == "Neg"]
    others = [user for op in (*turned, *behind) for user, _ in topology.consumers[op] if user != suspect.culprit]
    return any(ops[user].type in _RELU for user in others)


def dead_relu_by_hand(suspect: Suspect) -> Verdict | None:
    """The same written as `maximum(x, 0)`. In a loss that is met this is a margin, and no matter; with an upper limit
    behind it, it is one end of a clip."""
    by_hand = suspect.op.type == "Maximum" and (suspect.op.api or "").endswith("maximum")
    at_zero = by_hand and 0.0 in (constant_of(suspect.op, 0), constant_of(suspect.op, 1))
    if not at_zero or is_at_goal(suspect) or _is_limited(suspect):
        return None
    return Verdict("dead_relu", "error")


def _is_limited(suspect: Suspect) -> bool:
    """Whether the result, scaled or shifted at most, goes into a minimum."""
    topology = suspect.topology
    queue = [suspect.culprit]
    for op in queue:  # grows while it is walked
        for taker in topology.onward(op):
            if topology.trace.ops[taker].type == "Minimum":
                return True
            if topology.trace.ops[taker].type in ("Mul", "RealDiv", "AddV2", "Sub") and taker not in queue:
                queue.append(taker)
    return False


def dropped(suspect: Suspect) -> Verdict | None:
    """Dropout has left nothing over."""
    drops = suspect.op.type in (*_SELECTING, "Mul") and "dropout" in f"{suspect.op.name} {suspect.op.api}".lower()
    return Verdict("mask_multiplies_to_zero", "warning") if drops else None


def factor_made_zero(suspect: Suspect) -> Verdict | None:
    """A product with what a dead ReLU, a dropout or a mask has made zero: the story is theirs."""
    if suspect.op.type not in PRODUCTS:
        return None
    for op in _behind(suspect):
        if suspect.type_of(op) in LOOPS and keeps_first_state(suspect, op):
            return Verdict("mask_multiplies_to_zero", "warning", first_of_loop(suspect, op))
        zeroed = _turns_zero(suspect, op)
        for rule in (dead_relu, dead_relu_by_choice, dropped, masked, _left_out) if zeroed is not None else ():
            verdict = rule(zeroed) if zeroed is not None else None
            if verdict is not None and verdict.cause == "dead_relu":
                return Verdict(verdict.cause, verdict.severity)
            if verdict is not None:
                return replace(verdict, culprit=verdict.culprit if verdict.culprit >= 0 else op)
    return None


def _left_out(suspect: Suspect) -> Verdict | None:
    """A `tf.where` that chose zeros."""
    return Verdict("branch_not_taken", "info") if suspect.op.type in _SELECTING else None


def first_of_loop(suspect: Suspect, loop: int) -> int:
    """Of the variables of one loop, each of which is an op of its own, the first: to speak of the whole loop."""
    return min(_variables_of_loop(suspect, loop))


def _variables_of_loop(suspect: Suspect, loop: int) -> list[int]:
    ops = suspect.topology.trace.ops
    stem = ops[loop].name.rpartition("/")[0] + "/"
    all_loops = [op for kind in LOOPS for op in suspect.topology.by_type.get(kind, ())]
    return [op for op in all_loops if ops[op].name.startswith(stem)] or [loop]


def keeps_first_state(suspect: Suspect, loop: int) -> bool:
    """Whether a loop that a mask may skip hands out zeros, as if it skipped every round: what multiplies with them
    gets no gradient either."""
    topology, measured, target = suspect.topology, suspect.measured, suspect.target

    def search() -> bool:
        if not any(suspect.type_of(op) in _SELECTING for op in _inside(suspect, loop)):
            return False
        queue = _variables_of_loop(suspect, loop)
        for op in queue:  # grows while it is walked
            for user in topology.onward(op):
                if suspect.type_of(user) in PRODUCTS and _gives_zero(suspect, user, op):
                    return True
                if suspect.type_of(user) in _PASSED_THROUGH | _LISTS and user not in queue:
                    queue.append(user)
        return False

    return measured.once(("first state", target, first_of_loop(suspect, loop)), search)


def _inside(suspect: Suspect, loop: int) -> list[int]:
    """The ops of the loop's rounds that go into what it hands on."""
    trace = suspect.topology.trace
    edges = [edge for place in _variables_of_loop(suspect, loop) for edge in trace.ops[place].inputs]
    queue = [edge.op for edge in edges if edge.carried and edge.op >= 0 and edge.input == 2]
    for op in queue:  # grows while it is walked
        if suspect.type_of(op) not in LOOPS:
            queue.extend(edge.op for edge in trace.ops[op].inputs if edge.op >= 0 and edge.op not in queue)
    return queue


def _gives_zero(suspect: Suspect, product: int, factor: int) -> bool:
    """Whether the other factor of a product gets zero, though a gradient arrives: this factor is zero."""
    measured, target = suspect.measured, suspect.target
    incoming = measured.of_op(target, product)
    others = [edge.op for edge in suspect.topology.trace.ops[product].inputs if edge.op >= 0 and edge.op != factor]
    gradients = [measured.of_op(target, op) for op in others]
    return (
        incoming is not None
        and not is_zero(incoming)
        and any(gradient is not None and is_zero(gradient) for gradient in gradients)
    )


def _turns_zero(suspect: Suspect, op: int) -> Suspect | None:
    """The suspect that an op in front is, if the gradient dies at it."""
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
    """What the other factor of a product is made by, seen through ops that keep zeros."""
    trace = suspect.topology.trace
    queue = [edge.op for edge in suspect.op.inputs if edge.op >= 0 and edge.op != suspect.producer]
    for op in queue:  # grows while it is walked
        if trace.ops[op].type in _PASSED_THROUGH | _LISTS:
            queue.extend(edge.op for edge in trace.ops[op].inputs if edge.op >= 0 and edge.op not in queue)
    return queue


def zero_initialised(suspect: Suspect) -> Verdict | None:
    """A product with what is zero because variables began as zeros; or a flat spot at such a zero.

    If one of these variables learns, this one will, from the next step on.
    """
    zeros = zero_values(suspect.measured)
    if suspect.op.type in PRODUCTS:
        places = [edge.op for edge in suspect.op.inputs if edge.op >= 0 and edge.op != suspect.producer]
    elif suspect.op.type in FLAT_AT_ZERO:
        places = [suspect.producer] if suspect.producer >= 0 else []
    elif suspect.op.type in _FUSED_NORMALISERS:
        places = [edge.op for edge in suspect.op.inputs if edge.input == 1]
    else:
        return None
    found = [zero for place in places if (zero := zeros[place]) is not None]
    at_goal = suspect.op.type in FLAT_AT_ZERO and suspect.measured.is_learned(suspect.target)
    if not found or at_goal:
        return None
    factors = found[0].union(*found) - {suspect.state.variable} or found[0]
    if any(suspect.measured.learns(factor) for factor in factors):
        return Verdict("zero_init_by_design", "info")
    return Verdict("zero_init_product", "error")


def zero_initialised_further_on(suspect: Suspect) -> Verdict | None:
    """Several ways, of which one leads through a product with zeros that learn, and the others cancel: a variational
    posterior that begins as the prior itself, so that a kernel or its inducing points make no difference yet.

    Once the zeros have moved the product passes what arrives at it, whatever the others come to.
    """
    topology, target = suspect.topology, suspect.target
    readers = topology.readers[suspect.state.variable]
    for op, zeros in suspect.measured.once(("learning zeros", target), lambda: _products_with_learning_zeros(suspect)):
        made_of = topology.made_by(op)
        if not made_of.isdisjoint(readers) and (topology.made_by(zeros) | {zeros}).isdisjoint(readers):
            return Verdict("zero_init_by_design", "info", op)
    return None


def _products_with_learning_zeros(suspect: Suspect) -> list[tuple[int, int]]:
    """The products at which an ordinary gradient arrives and of which one factor is zero, because variables that
    learn began as zeros; with that factor."""
    measured, zeros = suspect.measured, zero_values(suspect.measured)
    found = []
    for place, op in enumerate(suspect.topology.trace.ops):
        arriving = measured.of_op(suspect.target, place) if op.type in PRODUCTS else None
        if arriving is None or arriving.max_abs < VANISHING_BELOW:
            continue
        factors = [edge.op for edge in op.inputs if edge.op >= 0]
        learning = [factor for factor in factors if any(measured.learns(each) for each in zeros[factor] or ())]
        found.extend([(place, learning[0])] if learning else [])
    return found
