"""Normalisation over a single element."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from math import prod

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.gradient_sizes import is_the_only_way
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import FUSED_NORMALISERS, RELUS, is_square, scopes_of, shape_along
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.words.fields import SIZE, ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.record.schema import Trace

# Ops between a normalisation and the next weight.
_BETWEEN = frozenset(
    {"Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Tanh", "Identity", "IdentityN", "Reshape", "Squeeze", "Transpose"}
    | {"Mul", "AddV2", "MaxPool", "AvgPool", "Mean", "SelectV2", "Cast", "BatchToSpaceND", "SpaceToBatchND"}
)

_NEAR = 10
_MOST = 300

# What they return does not depend on the values of a batch.
_WITHOUT_VALUES = frozenset({"Shape", "ShapeN", "Size", "ReadVariableOp"})

# The remainder from rounding when two gradients cancel.
_FAINT = 1e-5


def rule(suspect: Suspect) -> Verdict | None:
    """Normalised over a single element. The evidence is a mean, in the normalisation or next to the op, with as many
    input elements as output elements. The result is zero: a ReLU right after it is flat there, and a weight after it is
    multiplied only by zeros.
    """
    trace, topology = suspect.topology.trace, suspect.topology
    if suspect.op.type in FUSED_NORMALISERS:
        return Verdict("degenerate_normalisation", "error")
    beside = [suspect.culprit, *(consumer for consumer, _ in topology.consumers[suspect.producer])]
    beside = [op for op in beside if suspect.type_of(op) == "Mean"]
    if any(_averages_one(trace, op) for op in beside):
        return Verdict("degenerate_normalisation", "error")
    if _mean_of_one(suspect, suspect.culprit) >= 0:
        return Verdict("degenerate_normalisation", "error")
    if suspect.op.type in RELUS and suspect.producer >= 0:
        mean = max(_mean_of_one(suspect, suspect.producer), _mean_before(suspect, suspect.producer))
        return Verdict("degenerate_normalisation", "error", mean) if mean >= 0 else None
    if suspect.op.type in PRODUCTS and any(_mean_of_one(suspect, op) >= 0 for op in _before(suspect)):
        return Verdict("degenerate_normalisation", "error")
    return None


def unit_of_one(suspect: Suspect) -> Verdict | None:
    """A vector with one element, divided by its own norm: the result is always one or minus one."""
    return _of_units(suspect, lambda _: True)


def noise_of_one(suspect: Suspect) -> Verdict | None:
    """The same for a gradient that is not small enough to be noticed: it is rounding noise if all of it comes through
    such a division."""
    return _of_units(suspect, lambda value: is_the_only_way(suspect, value))


def _of_units(suspect: Suspect, counts: Callable[[int], bool]) -> Verdict | None:
    gradient = suspect.state.gradient
    if gradient is None or gradient.max_abs > _FAINT:
        return None
    for value, place in suspect.measured.once(("units of one", suspect.target), lambda: _units_of_one(suspect)):
        if suspect.leads_to(value) and counts(value):
            return Verdict("degenerate_normalisation", "error", place, text=_UNIT_OF_ONE)
    return None


_UNIT_OF_ONE = Template(
    SIZE + "{op} divides a vector with a single element by its own norm: the result is 1 or -1 for any input.",
    'Compare the value itself, for example with `loss="mse"`, or normalise over an axis with several entries.',
)


def _units_of_one(suspect: Suspect) -> list[tuple[int, int]]:
    """Values whose square is summed over single elements and that get almost none of the gradient that arrives; with
    the other op that uses the value, which divides it."""
    topology, trace = suspect.topology, suspect.topology.trace
    found = []
    for total in topology.by_type.get("Sum", ()):
        square = trace.ops[total].inputs[0].op if trace.ops[total].inputs else -1
        if not is_square(trace, square) or not _averages_one(trace, total):
            continue
        value = trace.ops[square].inputs[0].op
        arrives, left = (suspect.measured.of_op(suspect.target, op) for op in (square, value))
        # The value must be divided by a result of the sum; the product in a squared distance is different.
        others = [user for user in topology.onward(value) if user != square and total in topology.made_by(user)]
        if arrives is not None and left is not None and others and left.max_abs <= _FAINT * arrives.max_abs:
            found.append((value, others[0]))
    return found


def _before(suspect: Suspect) -> list[int]:
    """The ops that compute the other factor of a product, as far as a normalisation may be among them."""
    trace = suspect.topology.trace
    queue = [edge.op for edge in suspect.op.inputs if edge.op >= 0 and edge.op != suspect.producer]
    for op in queue[:_NEAR]:
        if trace.ops[op].type in _BETWEEN:
            queue.extend(edge.op for edge in trace.ops[op].inputs if edge.op >= 0 and edge.op not in queue)
    return queue[:_NEAR]


def _mean_of_one(suspect: Suspect, op: int) -> int:
    """The mean over single elements of the normalisation layer that an op is in; -1 if there is none."""
    found = suspect.measured.once("means of one", lambda: _means_of_one(suspect.topology))
    return next((found[scope] for scope in scopes_of(suspect.topology.trace.ops[op].name) if scope in found), -1)


def _mean_before(suspect: Suspect, op: int) -> int:
    """The mean over single elements that everything an op is computed from, but for weights, has passed; -1 if there is
    none, or some of it has not."""
    ops = suspect.topology.trace.ops

    def back(place: int) -> list[int]:
        ends = _mean_of_one(suspect, place) >= 0 or ops[place].type in _WITHOUT_VALUES
        return [] if ends else [edge.op for edge in ops[place].inputs]

    behind = list(islice(walked([op], back), _MOST))
    means = {place: _mean_of_one(suspect, place) for place in behind}
    others = [ops[place] for place in behind if means[place] < 0 and ops[place].type not in _WITHOUT_VALUES]
    # A draw of random numbers has no inputs either.
    is_fed = any(each.given or each.data is None or (each.data and not each.inputs) for each in others)
    return -1 if is_fed or len(behind) == _MOST else max(means.values(), default=-1)


def _means_of_one(topology: Topology) -> dict[str, int]:
    """For each normalisation layer that has one, by its scope, a mean over single elements."""
    trace = topology.trace
    normalisers = {layer.scope for layer in trace.layers if layer.type.endswith("Normalization")}
    found: dict[str, int] = {}
    for mean in topology.by_type.get("Mean", ()) if normalisers else ():
        if _averages_one(trace, mean):
            for scope in normalisers.intersection(scopes_of(trace.ops[mean].name)):
                found.setdefault(scope, mean)
    return found


def _averages_one(trace: Trace, index: int) -> bool:
    op = trace.ops[index]
    if op.type not in ("Mean", "Sum") or not op.inputs or op.inputs[0].op < 0 or not op.outputs:
        return False
    before, after = shape_along(trace, op.inputs[0]), op.outputs[0].shape
    if before is None or after is None or before.count(-1) != after.count(-1):
        return False
    known = [prod(size for size in shape if size >= 0) for shape in (before, after)]
    return len(before) > 0 and known[0] == known[1]


def message_and_fix(group: Group) -> Text:
    """For a batch of one."""
    what = "{op} normalises over a single element, and the result is the same for any input."
    if group.op is not None and group.op.type in PRODUCTS and not _is_in_a_layer_for_it(group):
        what = (
            "{op} multiplies {them} by the result of a normalisation over a single element, which is the same for any "
            "input."
        )
    return Template(
        ZERO + what,
        "Use a larger batch, or `keras.layers.LayerNormalization()`."
        if _is_over_the_batch(group)
        else "Remove the normalisation here, or normalise over an axis with several entries.",
    )(group)


def _is_in_a_layer_for_it(group: Group) -> bool:
    name = group.op.name if group.op is not None else ""
    return any(each.type.endswith("Normalization") and name.startswith(f"{each.scope}/") for each in group.trace.layers)


def _is_over_the_batch(group: Group) -> bool:
    """Whether the single element is the only example of the batch, as far as the shape of the input tells."""
    edge = next((each for each in group.op.inputs if each.op >= 0), None) if group.op is not None else None
    shape = shape_along(group.trace, edge) if edge is not None else None
    return not shape or shape[0] == 1 or (shape[0] == -1 and shape[-1] != 1)


CAUSE = Cause(
    name="degenerate_normalisation",
    meaning="a normalisation takes the mean of one element: the gradient becomes zero there, at the ReLU after it, or "
    "at a product with its result; or a vector with a single element is divided by its norm",
    severity="error",
    fix="a larger batch; another axis",
    text=message_and_fix,
    leaves_noise=True,
)
