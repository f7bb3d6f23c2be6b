"""The ReLU of a layer is zero for most of its units in the whole batch, and the others learn."""

from __future__ import annotations

from math import ceil

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import RELUS
from tb_gradflow.analyse.over_time.silent_units import MOST, is_of_units
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text

# Ops between a vector of one number per unit and the ReLU that do not mix units.
_UNIT_BY_UNIT = frozenset({"BiasAdd", "AddV2", "Add", "Sub", "Mul", "Reshape", "Identity", "Cast", "ReadVariableOp"})

# At most this share of the gradient that arrives at the ReLU's output may be zero: units that a later layer switches
# off are not the fault of this ReLU.
_SILENT_BEHIND = 0.5

# With fewer rows, units are inactive by chance: at initialization, each row makes a unit inactive with a probability of
# one half.
_FEWEST_ROWS = 8

# This many recorded steps make up for an unknown batch size.
_SURE_FROM = 4


def rule(suspect: Suspect) -> Verdict | None:
    """Most elements of a bias get a gradient of exactly zero, although a gradient arrives at the ReLU after it."""
    gradient, trace = suspect.state.gradient, suspect.topology.trace
    if gradient is None or not MOST <= gradient.zero_fraction < 1 or not is_of_units(trace, suspect.state.variable):
        return None
    relu = _relu_behind(suspect)
    if relu < 0 or not _is_enough(suspect, relu):
        return None
    arrives = suspect.measured.of_op(suspect.target, relu)
    if arrives is None or arrives.zero_fraction > _SILENT_BEHIND:
        return None
    return Verdict("dead_units", "info", relu)


def _relu_behind(suspect: Suspect) -> int:
    """The ReLU that is the only use of the variable, without mixing units; -1 if there is none."""
    topology = suspect.topology
    readers = topology.readers[suspect.state.variable]
    place = readers[0] if len(readers) == 1 else -1
    while place >= 0 and suspect.type_of(place) not in RELUS:
        if topology.trace.ops[place].reads is None and suspect.type_of(place) not in _UNIT_BY_UNIT:
            return -1
        onward = set(topology.onward(place))
        place = onward.pop() if len(onward) == 1 else -1
    return place


def _is_enough(suspect: Suspect, relu: int) -> bool:
    """Whether the batch, or the number of steps, is large enough for this not to be chance."""
    shape = suspect.topology.trace.ops[relu].outputs[0].shape
    rows = shape[0] if shape else None
    silence = suspect.measured.silences.get(suspect.state.variable)
    if silence is not None and silence.steps >= _SURE_FROM:
        return True
    return rows is not None and rows >= _FEWEST_ROWS


def message_and_fix(group: Group) -> Text:
    counted = [_counted(group, place) for place in range(len(group.states))]
    told = " and ".join(counted[:3]) + (f" and {len(counted) - 3} more" if len(counted) > 3 else "")
    return Template(
        f"{told} are dead in this step: {{op}} returns zero for them on every input, and their gradient is exactly "
        "zero." + _since(group),
        "Nothing to fix as long as the loss keeps falling. If too few units remain active, lower the learning rate, "
        'initialise the bias to zero, or use `activation="leaky_relu"`, which passes a gradient for negative inputs.',
    )(group)


def _counted(group: Group, place: int) -> str:
    state = group.states[place]
    name = group.trace.variables[state.variable].name
    share = state.gradient.zero_fraction if state.gradient is not None else 0.0
    return f"{round(share * _size(group, place))} of {_size(group, place)} units of `{name.rpartition('/')[0] or name}`"


def _size(group: Group, place: int) -> int:
    return group.trace.variables[group.states[place].variable].shape[0] or 0


def _since(group: Group) -> str:
    silence = group.suspect.measured.silences.get(group.states[0].variable)
    if silence is None or silence.steps < 2:
        return ""
    most = ceil(MOST * _size(group, 0))
    if silence.before < 0:
        return f" In each of the last {silence.steps} recorded steps, at least {most} were dead."
    earlier = round(silence.share_before * _size(group, 0))
    return f" In step {silence.before}, {earlier} were dead; since step {silence.since}, at least {most}."


CAUSE = Cause(
    name="dead_units",
    meaning=f"the gradient of a bias is exactly zero in at least {MOST:.0%} of its elements, but not in all, and it "
    "becomes zero at the ReLU behind it; in a batch of at least 8 rows, or in 4 recorded steps in a row",
    severity="info",
    fix="lower learning rate, leaky ReLU",
    text=message_and_fix,
    plight="a gradient for only a few of its units",
)
