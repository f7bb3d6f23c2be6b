"""How the ops on the path to a variable change the size of its gradient."""

from __future__ import annotations

from math import prod

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.step.magnitude_path import Course

# If a single op shrinks the gradient by this many orders of magnitude, the depth is not the reason.
SINGLE_DECADES = 4.0

SAME_VALUE = frozenset({"Reshape", "Cast", "Identity", "ExpandDims", "Squeeze", "Transpose", "BroadcastTo"})
_NEAR = 8


def course_of(suspect: Suspect) -> Course:
    """How the gradient's size changes between the loss and the variable; empty if it was not measured."""
    gradient = suspect.topology.gradient(suspect.target)
    readers = [op for op in suspect.topology.readers[suspect.state.variable] if gradient.onward[op] >= 0]
    report = suspect.state.gradient
    if not readers or report is None or not report.max_abs:
        return {}
    takers = {taker for reader in readers for taker in suspect.topology.onward(reader) if gradient.hops[taker] >= 0}
    nearest_first = sorted(takers, key=lambda op: (gradient.hops[op], op))
    return suspect.measured.courses(suspect.target).to_variable(nearest_first, report.max_abs)


def element_count(shape: tuple[int, ...] | None) -> int:
    """The number of elements, with unknown sizes, such as that of a batch, counted as one; 0 if nothing is known."""
    return prod(max(size, 1) for size in shape) if shape is not None else 0


def just_behind(suspect: Suspect, place: int, count: int = _NEAR) -> list[int]:
    queue = list(suspect.topology.onward(place))
    for op in queue:  # grows while it is walked
        if len(queue) < count:
            queue.extend(user for user in suspect.topology.onward(op) if user not in queue)
    return queue


def read_at(suspect: Suspect, op: int) -> int | None:
    """The variable whose value an op returns, possibly in another shape or type; None if there is none."""
    trace = suspect.topology.trace
    while op >= 0 and trace.ops[op].reads is None and trace.ops[op].type in SAME_VALUE and trace.ops[op].inputs:
        op = trace.ops[op].inputs[0].op
    return trace.ops[op].reads if op >= 0 else None


def is_the_only_way(suspect: Suspect, place: int) -> bool:
    """Whether every path from the variable to the loss passes this op."""
    topology = suspect.topology
    starts = [op for op in topology.readers[suspect.state.variable] if op != place]
    around = walked(starts, lambda op: (user for user, _ in topology.consumers[op] if user != place))
    return topology.trace.targets[suspect.target].op not in around


def steepest(suspect: Suspect) -> tuple[float, int]:
    return max((share.most for share in course_of(suspect).values()), default=(0.0, -1))


def inside_loop(suspect: Suspect, place: int) -> int:
    """The loop before an op, if no gradient was recorded inside the loop: the op is then only the next place at which
    the gradient is known."""
    topology, measured, target = suspect.topology, suspect.measured, suspect.target

    def search() -> int:
        unrecorded = walked(
            [place], lambda op: (each for each in topology.inputs_of(op) if measured.of_op(target, each) is None)
        )
        return next((op for op in unrecorded if op != place and suspect.type_of(op) in LOOPS), place)

    return measured.once(("loop", target, place), search) if topology.has_carried else place
