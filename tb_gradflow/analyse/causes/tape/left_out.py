"""Trainable variables that the list for the gradient lacks by mistake, as far as the recorded steps tell: a teacher, a
target network or a constant looks the same in a single one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tb_gradflow.analyse.evidence.gradient_sizes import SAME_VALUE
from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.comparisons import LINEAR
from tb_gradflow.analyse.graph.op_sets import OFFSETS
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.step.measured import WEIGHT_NORM

KERNELS = frozenset({"MatMul", "BatchMatMulV2", "Conv2D", "Einsum"})

# A rate or a temperature may be raised on a schedule; a network that is trained in turn has changed by then.
_FEW_STEPS = 3

# Functions of a single parameter, such as one that keeps it positive.
_OF_ONE = SAME_VALUE | {"Exp", "Softplus", "Abs", "Square", "Sigmoid", "Tanh", "Neg", "Sqrt"}
_JOINING = OFFSETS | {"Sub", "Mul", "RealDiv", "Pow", "Maximum", "Minimum"}


def is_parameter(suspect: Suspect) -> bool:
    """Whether it is a plain variable, always the same, that is applied to each element of what a trained one computes
    from data: neither data nor the weight of a term of the loss."""
    topology, place = suspect.topology, suspect.state.variable
    ops, variable = topology.trace.ops, topology.trace.variables[place]
    if "/" in variable.name or variable.computed or not is_unchanged(suspect, place) or is_limit(suspect):
        return False
    trained = _from_trained(suspect)

    def onward(op: int) -> Sequence[int]:
        return topology.onward(op) if ops[op].type in _OF_ONE or ops[op].reads is not None else ()

    own = set(walked(topology.readers[place], onward))
    return any(
        ops[op].type in _JOINING
        and ops[op].data
        and any(edge.op in trained and edge.op not in own for edge in ops[op].inputs)
        and _is_larger(ops[op].outputs[0].shape, variable.shape)
        for op in own
        if ops[op].outputs
    )


# An op behind an offset that bends, and one whose slope has the same sign everywhere there.
_LIMITS = frozenset({"Maximum", "Minimum", "Relu", "ClipByValue"})
_OF_LIMITS = frozenset({"Square"})
_OFFSETTING = LINEAR - {"Mul", "RealDiv", "DivNoNan"} | SAME_VALUE


def is_limit(suspect: Suspect) -> bool:
    """Whether a loss only adds a variable to what it compares with a limit, and sums what is left: the margin of a
    hinge, or the bounds of a ratio. To train it would only move the limit to where the loss does not count."""
    topology, target = suspect.topology, suspect.target
    ops, hops = topology.trace.ops, topology.influence(target).hops if target >= 0 else ()
    # Of each op: whether a limit is behind, and whether that is the op before.
    queue = [(op, False, False) for op in topology.readers[suspect.state.variable]]
    seen = set(queue)
    limits = 0
    for op, is_limited, at_limit in queue:  # grows while it is walked
        each = ops[op]
        if each.type in _LIMITS:
            is_limited, at_limit, limits = True, True, limits + 1
        elif each.type in _OF_LIMITS and at_limit:
            at_limit = False
        elif each.reads is None and each.type not in (LINEAR | SAME_VALUE if is_limited else _OFFSETTING):
            return False
        else:
            at_limit = at_limit and each.type in SAME_VALUE
        for reached in topology.onward(op):
            state = (reached, is_limited, at_limit)
            if hops and hops[reached] >= 0 and state not in seen:
                seen.add(state)
                queue.append(state)
    return limits > 0


def is_factor_of_data(suspect: Suspect) -> bool:
    """Whether it is a number, and each use of it joins it, as it is, with what no trained variable is behind: the
    discount of what a target network expects, or the size of noise. One that first goes through a function, as the
    logarithm of a deviation does, is made to be trained."""
    topology, place = suspect.topology, suspect.state.variable
    ops = topology.trace.ops
    if topology.trace.variables[place].shape != ():
        return False
    trained, queue = _from_trained(suspect), list(topology.readers[place])
    for op in queue:  # grows while it is walked
        for user in topology.onward(op):
            each = ops[user]
            if each.type not in SAME_VALUE | _JOINING | {"Neg"}:
                return False
            others = {edge.op for edge in each.inputs if edge.op >= 0}.difference(queue)
            if not others.isdisjoint(trained):
                return False
            if not others and not each.data and user not in queue:
                queue.append(user)
    return bool(queue)


def _is_larger(shape: tuple[int, ...] | None, other: tuple[int, ...]) -> bool:
    return shape is not None and (len(shape) > len(other) or prod(map(abs, shape)) > prod(other))


def is_untrained_head(suspect: Suspect) -> bool:
    """Whether it belongs to a network behind trained layers that still has its first values: an offset in it is zero,
    and nothing has changed it. What a teacher or a target network computes does not come from trained layers; what
    judges a generated image is used for real ones too, or was trained before."""
    topology, place = suspect.topology, suspect.state.variable
    variables, ops = topology.trace.variables, topology.trace.ops
    asked = _asked(suspect)
    owner, _, rest = variables[place].name.partition("/")
    if not rest or suspect.measured.variables is None or not all("/" in variables[each].name for each in asked):
        return False
    own = [each for each, variable in enumerate(variables) if variable.name.partition("/")[0] == owner]
    if not asked.isdisjoint(own) or not all(is_unchanged(suspect, each) for each in own):
        return False
    norms = suspect.measured.variables[:, WEIGHT_NORM]
    if not any(norms[each] == 0 and variables[each].name.endswith("bias") for each in own):
        return False
    trained = _from_trained(suspect)
    products = [
        [op for reader in topology.readers[each] for op in topology.onward(reader) if ops[op].type in KERNELS]
        for each in own
    ]
    behind = all(any(edge.op in trained for edge in ops[op].inputs) for each in products for op in each)
    return behind and max(map(len, products)) == 1


def losses_of_others(suspect: Suspect) -> tuple[int, ...]:
    """The losses that all depend on a network, and whose gradients are requested for the same other variables, if the
    network still has its first values: the one that is meant to train it trains those instead. None otherwise."""
    topology, place = suspect.topology, suspect.state.variable
    variables, measured = topology.trace.variables, suspect.measured
    owner, _, rest = variables[place].name.partition("/")
    if not rest or measured.variables is None:
        return ()
    # The moving means of a normalisation change without a gradient.
    own = [each for each, it in enumerate(variables) if it.trainable and it.name.partition("/")[0] == owner]
    norms = measured.variables[:, WEIGHT_NORM]
    is_first = any(norms[each] == 0 and variables[each].name.endswith(_OFFSETS) for each in own)
    if not is_first or not all(is_unchanged(suspect, each) for each in own):
        return ()
    asked: dict[int, set[int]] = {}
    for entry in topology.trace.variable_gradients:
        if entry.outcome == "value" and not variables[entry.variable].computed:
            asked.setdefault(entry.target, set()).add(entry.variable)
    if any(not each.isdisjoint(own) for each in asked.values()):
        return ()
    same = [target for target, those in asked.items() if those == asked.get(suspect.target)]
    reads = {reader for each in own for reader in topology.readers[each]}
    depend = [target for target in same if any(topology.influence(target).hops[reader] >= 0 for reader in reads)]
    return tuple(sorted(depend)) if len(depend) > 1 else ()


_OFFSETS = ("bias", "beta")

# By whose result, and by what it learns from.
_LEARNS_FROM = {"student": "teacher", "online": "target"}


def learns_in_its_place(suspect: Suspect) -> str:
    """The network that is trained instead of this one, if the names of the two tell that it should be the other way
    round: a teacher instead of the student. Empty if they do not."""
    variables = suspect.topology.trace.variables
    owner, *rest = variables[suspect.state.variable].name.lower().split("/")
    others = sorted({variables[each].name.partition("/")[0] for each in _asked(suspect)})
    fixed = [other for role, other in _LEARNS_FROM.items() if rest and role in owner]
    trained = [other for other in others if any(role in other.lower() for role in fixed)]
    return trained[0] if trained and trained == others else ""


def _asked(suspect: Suspect) -> set[int]:
    entries = suspect.topology.trace.variable_gradients
    return {each.variable for each in entries if each.target == suspect.target and each.outcome == "value"}


def _from_trained(suspect: Suspect) -> set[int]:
    """The ops that compute something from variables to which a gradient was returned."""
    topology = suspect.topology
    return suspect.measured.once(
        ("from trained", suspect.target),
        lambda: topology.reached_from(reader for each in _asked(suspect) for reader in topology.readers[each]),
    )


def is_unchanged(suspect: Suspect, variable: int) -> bool:
    return suspect.measured.unchanged.get(variable, 0) >= _FEW_STEPS
