"""Gradients that are zero because a mask, a gate or a selection leaves something out in this step."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import FLAT_AT_ZERO, PRODUCTS
from tb_gradflow.analyse.graph.op_sets import COPIES, ROUTING
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import is_empty
from tb_gradflow.analyse.step.movement import movement_of

_SUMS = frozenset({"AddV2", "Add", "AddN"})


def masked(suspect: Suspect) -> Verdict | None:
    """A mask or weight made of data is zero wherever this variable has a say; or a count of zero is divided by."""
    mask = suspect.culprit
    if suspect.op.type in FLAT_AT_ZERO and suspect.producer >= 0:
        # The square of what the mask has made zero is flat there.
        mask = suspect.producer
    if suspect.topology.has_factor_of_data(mask):
        expected = _is_part(suspect) or _is_blended(suspect, mask) or _is_scheduled(suspect, mask)
        return Verdict("mask_multiplies_to_zero", "info" if expected else "warning", mask)
    if suspect.op.type in PRODUCTS and _is_part(suspect):
        return Verdict("mask_multiplies_to_zero", "info")
    if suspect.op.type == "DivNoNan":
        return Verdict("mask_multiplies_to_zero", "info")
    return None


def masked_in_part(suspect: Suspect) -> Verdict | None:
    """The weight itself is multiplied with a mask, which makes zeros of a part of its gradient, and the optimizer moves
    that part all the same, or was not seen. Information: it is how parts of a weight are held still."""
    topology, state = suspect.topology, suspect.state
    if state.gradient is None or not 0 < state.gradient.zero_fraction < 1:
        return None
    moved = movement_of(suspect.measured, state.variable)
    if moved is not None and not moved.moved:
        return None
    shape = topology.trace.variables[state.variable].shape
    readers = topology.readers[state.variable]
    copies = walked(readers, lambda op: topology.onward(op) if topology.trace.ops[op].type in COPIES else ())
    for op in copies:
        each, arriving = topology.trace.ops[op], suspect.measured.of_op(suspect.target, op)
        if (
            (
                _is_masked_by_data(topology, op)
                or _is_masked_by_frozen(topology, op)
                # What is chosen between two values is held still by nobody, unless an optimizer was seen to move it.
                or (moved is not None and _is_chosen(topology, op))
            )
            and each.outputs[0].shape == shape
            and arriving is not None
            and arriving.zero_fraction < state.gradient.zero_fraction
        ):
            return Verdict("mask_multiplies_to_zero", "info", op)
    return None


def masked_by_hand(suspect: Suspect) -> Verdict | None:
    """The gradient that the optimizer is given has more zeros than the tape's, and the optimizer moves those elements
    all the same. Information, as above."""
    moved, gradient = movement_of(suspect.measured, suspect.state.variable), suspect.state.gradient
    if moved is None or gradient is None or not moved.moved:
        return None
    masked = moved.zeros > gradient.zero_fraction * moved.size + 0.5
    return Verdict("mask_multiplies_to_zero", "info", NO_OP) if masked else None


def _is_masked_by_data(topology: Topology, op: int) -> bool:
    return topology.has_factor_of_data(op) and bool(topology.trace.ops[op].data)


def _is_chosen(topology: Topology, op: int) -> bool:
    """Whether the op is a `tf.where` whose condition no trainable variable has a part in."""
    if topology.trace.ops[op].type not in ("Select", "SelectV2"):
        return False
    # A condition that no variable has a part in is not among the inputs.
    conditions = [edge.op for edge in topology.trace.ops[op].inputs if edge.input == 0]
    behind = {place for each in conditions for place in topology.made_by(each) | {each}}
    reads = {each for place in behind if (each := topology.trace.ops[place].reads) is not None}
    return not any(topology.trace.variables[each].trainable for each in reads)


def _is_masked_by_frozen(topology: Topology, op: int) -> bool:
    """Whether the op is a product with a variable that is not to be trained, or with what is made of such alone."""
    if topology.trace.ops[op].type not in ("Mul", "MulNoNan"):
        return False
    frozen = 0
    for edge in topology.trace.ops[op].inputs:
        behind = topology.made_by(edge.op) | {edge.op} if edge.op >= 0 else frozenset()
        reads = {each for place in behind if (each := topology.trace.ops[place].reads) is not None}
        frozen += bool(reads) and not any(topology.trace.variables[each].trainable for each in reads)
    return frozen == 1


def _is_blended(suspect: Suspect, product: int) -> bool:
    """Whether another product with data is added to it, element by element: a fade from one way to the other, which is
    a `tf.where` by arithmetic. Terms of a loss are none."""
    ops, topology = suspect.topology.trace.ops, suspect.topology
    return any(
        ops[user].type in _SUMS
        and ops[user].outputs[0].shape != ()
        and any(edge.op not in (product, -1) and topology.has_factor_of_data(edge.op) for edge in ops[user].inputs)
        for user in topology.onward(product)
    )


def _is_scheduled(suspect: Suspect, product: int) -> bool:
    """Whether a whole term of the loss is multiplied with a number that is no constant, beside terms that teach: it
    joins later, or left."""
    term = suspect.topology.trace.ops[product]
    if term.outputs[0].shape != () or term.constants:
        return False
    asked = {entry.variable for entry in suspect.topology.trace.variable_gradients if entry.target == suspect.target}
    return any(suspect.measured.learns(variable) for variable in asked)


def _is_part(suspect: Suspect) -> bool:
    """Whether what is masked is a part of a tensor whose other parts do get a gradient: these labels are missing, and
    others are not."""
    behind = suspect.measured.once(("parts", suspect.target), lambda: _behind_parts(suspect))
    return suspect.culprit in behind


def _behind_parts(suspect: Suspect) -> set[int]:
    """The ops behind a join or a slice of which some elements get a gradient and others get zero."""
    topology, measured = suspect.topology, suspect.measured
    routes = [op for op, each in enumerate(topology.trace.ops) if each.type in ROUTING]
    gradients = [(op, measured.of_op(suspect.target, op)) for op in routes]
    parts = [op for op, gradient in gradients if gradient is not None and 0 < gradient.zero_fraction < 1]
    return topology.reached_from({user for op in parts for user, _ in topology.consumers[op]})


def nothing_selected(suspect: Suspect) -> Verdict | None:
    """Not one element was selected: what is made of them is the mean of nothing, or the sum of nothing.

    The evidence is a gradient without elements at the selection.
    """
    topology = suspect.topology
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    if incoming is None or not is_empty(incoming):
        return None
    for op in topology.gradient(suspect.target).from_op(suspect.culprit):
        after = suspect.measured.of_op(suspect.target, op)
        if after is not None and not is_empty(after):
            if suspect.measured.loss_is_finite(suspect.target):
                break
            return Verdict("zero_over_zero", "error", op)
    return Verdict("mask_multiplies_to_zero", "info")
