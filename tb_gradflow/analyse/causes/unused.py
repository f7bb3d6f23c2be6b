"""Variables whose value takes no part in the loss, and those that only a regulariser reaches."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tb_gradflow.analyse.evidence.penalties import is_only_added, is_penalty_alone
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.dead_terms import term_in_vain
from tb_gradflow.analyse.graph.op_sets import STRAIGHT, is_float, scopes_of
from tb_gradflow.analyse.graph.same_named import numbered
from tb_gradflow.analyse.graph.topology import Topology

# Parts that published models carry along for another task; idle in this one by design.
_IDLE_BY_DESIGN = ("pooler", "projector", "projection_head", "proj_head", "lm_head", "nsp_head", "mlm_head")

_MASKED = ("mask_token", "mask_emb", "masked_spec_embed")

_PARTS = re.compile(r"_?(kernel|bias|weights?|w|b|scale|offset|gamma|beta)$")

_NUMBERS = re.compile(r"[0-9]+")

_STATE_WEIGHTS = ("recurrent", "weight_hh", "w_hh")
_NEAR = 12

_SHIFTS = frozenset({"BiasAdd", "AddV2", "Add"})


def kept_as_state(suspect: Suspect) -> Verdict | None:
    """The loss depends on no variable, and this one's way ends in an assignment: the loss is read from state.

    Such as the result of a metric, whose variables are no part of the trace.
    """
    stored = suspect.culprit >= 0 and suspect.op.type.startswith("Assign")
    detached = suspect.target >= 0 and suspect.topology.trace.targets[suspect.target].op < 0
    return Verdict("variable_assign", "error") if stored and detached else None


def only_written(suspect: Suspect) -> Verdict | None:
    """A single number that nothing computes with, and that the step changes all the same: a counter."""
    variable = suspect.topology.trace.variables[suspect.state.variable]
    counts = suspect.culprit < 0 and variable.shape == () and suspect.measured.moved(suspect.state.variable)
    return Verdict("non_trainable_state", "info") if counts else None


def differentiated_away(suspect: Suspect) -> Verdict | None:
    """The loss is made of an inner gradient, and the variable has no part in that: an offset, for it has no derivative;
    or a factor in front of which every slope is constant."""
    topology, ops = suspect.topology, suspect.topology.trace.ops
    if suspect.target < 0 or suspect.culprit < 0:
        return None
    straight = suspect.measured.once("straight", lambda: _straight(topology)) if suspect.op.backward else -1
    if straight >= 0:
        return Verdict("second_order_missing", "error", straight)
    if suspect.culprit not in suspect.measured.once(("inner", suspect.target), lambda: _inner_ends(suspect)):
        return None
    shifts = [op for reader in topology.readers[suspect.state.variable] for op in topology.onward(reader)]
    if shifts and all(ops[op].type in _SHIFTS for op in shifts):
        return Verdict("shift_invariant_parameter", "info", shifts[0])
    return None


def _straight(topology: Topology) -> int:
    """The last op of an inner gradient whose own derivative is zero; -1 if there is none."""
    return max(
        (op for kind in STRAIGHT for op in topology.by_type.get(kind, ()) if topology.trace.ops[op].backward),
        default=-1,
    )


def _inner_ends(suspect: Suspect) -> set[int]:
    """What inner gradients are taken of, where the loss is made of such."""
    topology = suspect.topology
    influence = topology.influence(suspect.target).hops
    inner = any(each.backward and influence[op] >= 0 for op, each in enumerate(topology.trace.ops))
    others = (target.op for place, target in enumerate(topology.trace.targets) if place != suspect.target)
    return set(others) if inner else set()


def branch_not_taken(suspect: Suspect) -> Verdict | None:
    """Only the branch that a `tf.cond` did not take in this step uses the variable.

    One that hands out no floating number chooses nothing that could go into a loss: an assertion, a summary.
    """
    branches = suspect.culprit >= 0 and suspect.op.type in ("If", "StatelessIf")
    skipped = branches and any(is_float(tensor.dtype) for tensor in suspect.op.outputs)
    return Verdict("branch_not_taken", "info") if skipped else None


def unused_by_design(suspect: Suspect) -> Verdict | None:
    """A pooler or projection head, called and not used, or what stands for masked places where none is masked:
    harmless, and known for it."""
    name = suspect.topology.trace.variables[suspect.state.variable].name.lower()
    # Whoever computes a loss with a head does not leave it idle.
    named = any(word in name for word in _IDLE_BY_DESIGN) and term_in_vain(suspect.topology, suspect.state.variable) < 0
    idle = named or _is_end_of_stream(suspect)
    idle = idle or (suspect.culprit < 0 and stands_for_masked(name))
    return Verdict("unused_by_design", "info") if idle else None


def stands_for_masked(name: str) -> bool:
    """Whether a weight is called like what takes the place of masked words, patches or frames in a pre-training."""
    return any(word in name.rpartition("/")[2].lower() for word in _MASKED)


def _is_end_of_stream(suspect: Suspect) -> bool:
    """What the last of several like blocks adds to the stream between them, which nothing takes up any more.

    The blocks before it have the same part, and there it trains; and the rest of this block trains.
    """
    topology, target = suspect.topology, suspect.target
    if target < 0 or suspect.culprit < 0 or suspect.op.type not in ("Sub", "AddV2", "Add"):
        return False
    influence = topology.influence(target).hops
    if not any(edge.op >= 0 and influence[edge.op] >= 0 for edge in suspect.op.inputs):
        return False
    name = topology.trace.variables[suspect.state.variable].name
    block = "/".join(name.split("/")[:-2])
    parts, blocks = suspect.measured.once(("trains", target), lambda: _that_train(topology, target))
    return _NUMBERS.sub("#", name) in parts and block in blocks


def _that_train(topology: Topology, target: int) -> tuple[set[str], set[str]]:
    """Of the variables that a gradient reaches: their names without numbers, and the scopes that they are in."""
    names = [each.name for place, each in enumerate(topology.trace.variables) if topology.receives(place, target)]
    return {_NUMBERS.sub("#", name) for name in names}, {scope for name in names for scope in scopes_of(name)}


def recurrent_weight_single_step(suspect: Suspect) -> Verdict | None:
    """The state weights of a recurrent layer that sees one time step: they multiply a first state of zeros, or are not
    used at all. Of weights that are no Keras layer's, others have to learn, or more than a state is missing."""
    topology, place = suspect.topology, suspect.state.variable
    name = topology.trace.variables[place].name
    own = name.rpartition("/")[2]
    if not any(word in own for word in _STATE_WEIGHTS) or not _others_learn(suspect):
        return None
    products = [op for reader in topology.readers[place] if (op := _first_product(suspect, reader)) >= 0]
    return Verdict("recurrent_weight_single_step", "warning", min(products, default=suspect.culprit))


def _first_product(suspect: Suspect, reader: int) -> int:
    """The product that a weight goes into, cut into gates or not; -1 if it is not near."""
    queue = list(suspect.topology.onward(reader))
    for op in queue[:_NEAR]:
        if suspect.type_of(op) in PRODUCTS:
            return op
        queue.extend(suspect.topology.onward(op))
    return next((op for op in queue[:_NEAR] if suspect.type_of(op) in PRODUCTS), -1)


def _others_learn(suspect: Suspect) -> bool:
    """Whether the other weights of the layer learn, or all others where it is alone in its layer."""
    variables, own = suspect.topology.trace.variables, suspect.state.variable
    others = [place for place, each in enumerate(variables) if place != own and each.trainable]
    beside = [place for place in _siblings(suspect) if place != own and variables[place].trainable] or others
    return not beside or all(suspect.measured.learns(place) for place in beside)


def output_not_used(suspect: Suspect) -> Verdict | None:
    """What is computed from the variable never reaches the loss, or nothing is.

    An error where no variable of its layer trains; a warning where some do, and of a tensor for which zeros will do.
    """
    variables, targets = suspect.topology.trace.variables, suspect.topology.trace.targets
    if variables[suspect.state.variable].computed and targets[suspect.target].unconnected == "zero":
        return Verdict("output_not_used", "warning")
    if variables[suspect.state.variable].computed:
        nobody = not _is_made_in_step(suspect)
        return Verdict("output_not_used", "info" if _is_spare_data(suspect) else "error", NO_OP if nobody else -1)
    siblings = [index for index in _siblings(suspect) if variables[index].trainable]
    alive = (
        any(suspect.topology.receives(index, suspect.target) for index in siblings) if suspect.target >= 0 else False
    )
    return Verdict("output_not_used", "warning" if alive else "error")


def _is_made_in_step(suspect: Suspect) -> bool:
    """Whether an op computes a tensor, and the step was not given it."""
    makers = suspect.topology.readers[suspect.state.variable]
    return any(suspect.type_of(op) not in ("Const", "Placeholder") for op in makers)


def _is_spare_data(suspect: Suspect) -> bool:
    """Whether a tensor was made of no variable, and a gradient arrives for another source of the same call: a list
    that serves several losses may hold more than one of them uses."""
    topology, place = suspect.topology, suspect.state.variable
    behind = [topology.made_by(op) | {op} for op in topology.readers[place]]
    kept = {op for other, ops in enumerate(topology.readers) if other != place for op in ops}
    others = [each for each in topology.trace.variable_gradients if each.target == suspect.target]
    return all(kept.isdisjoint(ops) for ops in behind) and any(each.outcome == "value" for each in others)


def regularizer_only(suspect: Suspect) -> Verdict | None:
    """A gradient arrives, and all of it from the penalty on the variable's own size.

    Asked of connected variables too; an unused variable beside one of these shares its story.
    """
    topology, state = suspect.topology, suspect.state
    if state.target < 0:
        return None
    if state.status == "unused":
        return Verdict("regularizer_only", "warning") if _has_penalised_sibling(suspect) else None
    if not is_penalty_alone(topology, state.variable, state.target):
        return None
    return Verdict("regularizer_only", "info" if is_only_added(topology, state.variable) else "warning")


def _has_penalised_sibling(suspect: Suspect) -> bool:
    return any(is_penalty_alone(suspect.topology, index, suspect.target) for index in _siblings(suspect))


def _siblings(suspect: Suspect) -> Sequence[int]:
    """The variables of the suspect's layer, its own included."""
    variables = suspect.topology.trace.variables

    def by_layer() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, each in enumerate(variables):
            found.setdefault(_layer_of(each.name), []).append(place)
        return found

    return suspect.measured.once("layers", by_layer)[_layer_of(variables[suspect.state.variable].name)]


def _layer_of(name: str) -> str:
    """The layer that a variable belongs to; of a name without one what is left without the part that it plays. What a
    clone of a network has the same names for is numbered, and no part of that layer."""
    name, number = numbered(name)
    layer, _, own = name.rpartition("/")
    return (layer or _PARTS.sub("", own)) + number
