"""What happens inside loops and functions, whose gradients are not recorded."""

from __future__ import annotations

from collections.abc import Iterable

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import CHOICES, LOOPS
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.step.measured import is_zero

SQUASHING = frozenset({"Sigmoid", "Tanh", "Softsign"})
_FLAT = SQUASHING | {"Relu", "Relu6", "Minimum", "Maximum", "Softmax", "LogSoftmax"}


def loop_in(suspect: Suspect, inside: list[int]) -> int:
    """The variable of a loop among some ops, the nearest to the loss; -1 if there is none."""
    return max((op for op in inside if suspect.type_of(op) in LOOPS), default=-1)


def unrecorded_before(suspect: Suspect) -> list[int]:
    """The ops without a recorded gradient between the variable and the suspect; none if all were recorded."""
    return [] if suspect.exact else unrecorded_between(suspect, suspect.producer)


def flat_unseen(suspect: Suspect, kinds: Iterable[str]) -> int:
    """The op of one of these kinds among the ops without a recorded gradient between the variable and the suspect, the
    nearest to the loss; -1 if there is none, or if another kind of op there can be flat."""
    flat = [op for op in unrecorded_before(suspect) if suspect.type_of(op) in _FLAT]
    return flat[-1] if flat and {suspect.type_of(op) for op in flat} <= set(kinds) else -1


def unrecorded_between(suspect: Suspect, end: int) -> list[int]:
    """The ops without a recorded gradient on the paths from the variable to `end`, which is one of them."""
    topology, measured, target = suspect.topology, suspect.measured, suspect.target

    def is_lost(op: int) -> bool:
        gradient = measured.of_op(target, op)
        return gradient is None or is_zero(gradient)

    def search() -> list[int]:
        readers = topology.readers[suspect.state.variable]
        ahead = set(walked(readers, lambda op: filter(is_lost, topology.onward(op))))
        unrecorded = {op for op in ahead if measured.of_op(target, op) is None}
        return sorted(walked({end} & ahead, lambda op: unrecorded.intersection(topology.inputs_of(op))))

    return measured.once(("unrecorded", target, suspect.state.variable, end), search)


# Zeros stay zeros through these; and a product has zeros where one factor has.
PASSED_THROUGH = frozenset(
    {"Identity", "Reshape", "Cast", "Transpose", "Squeeze", "ExpandDims", "MaxPool", "AvgPool", "Mul", "Sum"}
    | {"SelectV2", "SpaceToBatchND", "BatchToSpaceND", "ConcatV2", "Mean", "Max", "StridedSlice", "Slice", "GatherV2"}
    | {"ReverseV2", "Tile", "BroadcastTo", "Pack"}
)

# A loop collects the results of its iterations in a list.
LISTS = frozenset({"TensorListStack", "TensorListGetItem", "TensorListSetItem", "TensorListFromTensor"})


def first_of_loop(suspect: Suspect, loop: int) -> int:
    """The op that stands for a whole loop in a message: the first of the loop's variables, each of which is a separate
    op."""
    return min(_variables_of_loop(suspect, loop))


def _variables_of_loop(suspect: Suspect, loop: int) -> list[int]:
    ops = suspect.topology.trace.ops
    stem = ops[loop].name.rpartition("/")[0] + "/"
    all_loops = [op for kind in LOOPS for op in suspect.topology.by_type.get(kind, ())]
    return [op for op in all_loops if ops[op].name.startswith(stem)]


def keeps_first_state(suspect: Suspect, loop: int) -> bool:
    """Whether a loop that a mask may skip returns zeros, as if it skipped every iteration: a value multiplied by them
    gets no gradient either."""
    topology, measured, target = suspect.topology, suspect.measured, suspect.target

    def search() -> bool:
        if not any(suspect.type_of(op) in CHOICES for op in _inside(suspect, loop)):
            return False
        passed, onward = PASSED_THROUGH | LISTS, topology.onward
        zeros = walked(
            _variables_of_loop(suspect, loop),
            lambda op: (user for user in onward(op) if suspect.type_of(user) in passed),
        )
        return any(
            suspect.type_of(user) in PRODUCTS and _gives_zero(suspect, user, op) for op in zeros for user in onward(op)
        )

    return measured.once(("first state", target, first_of_loop(suspect, loop)), search)


def _inside(suspect: Suspect, loop: int) -> list[int]:
    """The ops inside the loop that contribute to its result."""
    topology = suspect.topology
    edges = (edge for place in _variables_of_loop(suspect, loop) for edge in topology.trace.ops[place].inputs)
    results = (edge.op for edge in edges if edge.carried and edge.input == 2)
    return [*walked(results, lambda op: topology.inputs_of(op) if suspect.type_of(op) not in LOOPS else ())]


def _gives_zero(suspect: Suspect, product: int, factor: int) -> bool:
    """Whether the other factor of a product gets a gradient of zero although a gradient arrives at the product: then
    this factor is zero."""
    measured, target = suspect.measured, suspect.target
    incoming = measured.of_op(target, product)
    others = [edge.op for edge in suspect.topology.trace.ops[product].inputs if edge.op >= 0 and edge.op != factor]
    gradients = [measured.of_op(target, op) for op in others]
    return (
        incoming is not None
        and not is_zero(incoming)
        and any(gradient is not None and is_zero(gradient) for gradient in gradients)
    )
