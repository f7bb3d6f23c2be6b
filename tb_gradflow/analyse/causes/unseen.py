"""Zeros that are born where no gradient was recorded: inside a loop, a branch or a nested function.

The op behind that part is known to get a gradient, and the variable to get none. What lies between is judged by what
it is made of: first by ops that never pass anything, then by what the batch and the ways around tell.
"""

from __future__ import annotations

from tb_gradflow.analyse.causes.zero_factor import first_of_loop, keeps_first_state
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS, zero_values
from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.analyse.step.measured import LARGE_INPUT, is_zero

_SQUASHING = frozenset({"Sigmoid", "Tanh", "Softsign"})


def sign_unseen(suspect: Suspect) -> Verdict | None:
    """Sign inside: its registered gradient is all zeros, wherever it stands."""
    signs = [op for op in _between(suspect) if suspect.type_of(op) == "Sign"]
    return Verdict("nondiff_sign", "error", signs[-1]) if signs else None


def zero_initialised_unseen(suspect: Suspect) -> Verdict | None:
    """Every way through the part that was not recorded multiplies with what is zero because variables began as zeros.

    If one of these variables learns, this one will, from the next step on.
    """
    inside = set(_between(suspect))
    zeros = zero_values(suspect.measured) if inside else []
    starts = inside.intersection(suspect.topology.readers[suspect.state.variable])
    reached, queue, met = set(starts), sorted(starts), dict[int, frozenset[int]]()
    for op in queue:  # grows while it is walked
        for user in suspect.topology.onward(op):
            if user not in inside or user in reached or user in met:
                continue
            made_of = [zeros[edge.op] for edge in suspect.topology.trace.ops[user].inputs if edge.op not in (op, -1)]
            factors = [zero - {suspect.state.variable} for zero in made_of if zero]
            if suspect.type_of(user) in PRODUCTS and any(factors):
                met[user] = frozenset[int]().union(*factors)
            else:
                reached.add(user)
                queue.append(user)
    if not met or suspect.producer in reached:
        return None
    by_design = any(suspect.measured.learns(factor) for factors in met.values() for factor in factors)
    if by_design:
        return Verdict("zero_init_by_design", "info", min(met))
    return Verdict("zero_init_product", "error", min(met))


def branch_taken_is_flat(suspect: Suspect) -> Verdict | None:
    """Both branches of a `tf.cond` use the variable, so one that does was taken: what is inside is flat."""
    if suspect.op.type not in ("If", "StatelessIf"):
        return None
    reached = suspect.topology.reached_from(suspect.topology.readers[suspect.state.variable])
    if not {1, 2} <= {edge.input for edge in suspect.op.inputs if edge.op in reached}:
        return None
    squashing = [op for op in _between(suspect) if suspect.type_of(op) in _SQUASHING]
    if squashing:
        return Verdict("saturation_sigmoid", "warning", squashing[-1])
    return relu_unseen(suspect)


def loop_skipped(suspect: Suspect) -> Verdict | None:
    """A recurrent layer whose mask leaves out every time step: what it hands on is its first state, zeros."""
    loop = loop_in(suspect, _between(suspect))
    skipped = loop >= 0 and keeps_first_state(suspect, loop)
    return Verdict("mask_multiplies_to_zero", "warning", first_of_loop(suspect, loop)) if skipped else None


def loop_saturates(suspect: Suspect) -> Verdict | None:
    """A recurrent layer whose gates get inputs so large that their slope is zero."""
    inside = _between(suspect)
    loop = loop_in(suspect, inside)
    large = any(report.max_abs > LARGE_INPUT for report in suspect.measured.input_reports)
    squashes = any(suspect.type_of(op) in _SQUASHING for op in inside)
    return Verdict("saturation_sigmoid", "warning", loop) if loop >= 0 and large and squashes else None


def loop_not_entered(suspect: Suspect) -> Verdict | None:
    """A loop that made no round in this step: what it begins with does get a gradient, and what it uses does not."""
    loop = loop_in(suspect, _between(suspect))
    return Verdict("branch_not_taken", "info", loop) if loop >= 0 and _begins_with_gradient(suspect, loop) else None


def loop_unseen(suspect: Suspect) -> Verdict | None:
    """Nothing is known but that it happens in a loop: gates that are flat are the usual reason."""
    inside = _between(suspect)
    loop = loop_in(suspect, inside)
    if loop < 0:
        return None
    if any(suspect.type_of(op) in ("Select", "SelectV2") for op in inside):
        # Large inputs were asked about before: of a layer with a mask that is the usual reason.
        return Verdict("mask_multiplies_to_zero", "warning", first_of_loop(suspect, loop))
    squashes = any(suspect.type_of(op) in _SQUASHING for op in inside)
    return Verdict("saturation_sigmoid" if squashes else "zero_gradient", "warning", loop)


def relu_unseen(suspect: Suspect) -> Verdict | None:
    """A ReLU, and nothing else inside that could be flat."""
    flat = {suspect.type_of(op) for op in _between(suspect)} & {"Relu", "Relu6", "Minimum", "Maximum", *_SQUASHING}
    relus = [op for op in _between(suspect) if suspect.type_of(op) in ("Relu", "Relu6")]
    return Verdict("dead_relu", "error", relus[-1]) if relus and flat <= {"Relu", "Relu6"} else None


def loop_in(suspect: Suspect, inside: list[int]) -> int:
    """The variable of a loop among some ops, the nearest to the loss; -1 if there is none."""
    return max((op for op in inside if suspect.type_of(op) in LOOPS), default=-1)


def _begins_with_gradient(suspect: Suspect, loop: int) -> bool:
    starts = [edge.op for edge in suspect.topology.trace.ops[loop].inputs if edge.input == 0 and edge.op >= 0]
    gradients = [suspect.measured.of_op(suspect.target, op) for op in starts]
    return any(gradient is not None and not is_zero(gradient) for gradient in gradients)


def _between(suspect: Suspect) -> list[int]:
    """The ops without a recorded gradient between the variable and the suspect; none if all were recorded."""
    if suspect.exact or suspect.producer < 0:
        return []
    return unrecorded_between(suspect, suspect.producer)


def unrecorded_between(suspect: Suspect, end: int) -> list[int]:
    """The ops without a recorded gradient that lie on ways from the variable to `end`, which is one of them."""
    topology, measured, target = suspect.topology, suspect.measured, suspect.target

    def is_lost(op: int) -> bool:
        gradient = measured.of_op(target, op)
        return gradient is None or is_zero(gradient)

    def search() -> list[int]:
        ahead, queue = set(topology.readers[suspect.state.variable]), list(topology.readers[suspect.state.variable])
        for op in queue:  # grows while it is walked
            for user in topology.onward(op):
                if user not in ahead and is_lost(user):
                    ahead.add(user)
                    queue.append(user)
        back, queue = {end} & ahead, [end] if end in ahead else []
        for op in queue:
            for edge in topology.trace.ops[op].inputs:
                if edge.op in ahead and edge.op not in back and measured.of_op(target, edge.op) is None:
                    back.add(edge.op)
                    queue.append(edge.op)
        return sorted(back)

    return measured.once(("unrecorded", target, suspect.state.variable, end), search)
