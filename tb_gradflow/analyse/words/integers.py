"""Numbers that are converted to integers: the ops that use these, and a straight-through estimator around the
conversion and back."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import discrete_part
from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.analyse.words.code import Call, assigned_by, bracketed, call_around, is_simple, without_cast
from tb_gradflow.analyse.words.names import Group, call_at, call_of, called, place_of, source_of, unused_name
from tb_gradflow.record.schema import Op


def only_as_integers(group: Group) -> bool:
    """Whether only integers are computed from the culprit's value, and no float from these again: a straight-through
    estimator at the culprit would end at the integers anyway."""
    topology, ops = group.suspect.topology, group.trace.ops
    influence = topology.influence(group.suspect.target).hops
    users = [user for user, _ in topology.consumers[group.culprit] if influence[user] >= 0]
    made = users if ops[group.culprit].type != "Cast" else [group.culprit]
    uses = discrete_part(group.suspect).uses
    casts = all(ops[op].type == "Cast" for op in made)
    return casts and bool(uses) and not any(_may_compute(ops[use.consumer]) for use in uses)


def _may_compute(op: Op) -> bool:
    """Whether the output of an op on integers may be floating-point numbers again: a loop takes its values from lists
    of tensors."""
    return op.type in _COMPUTING or any(tensor.dtype == "variant" for tensor in op.outputs)


_COMPUTING = LOOPS | {"Cast", "If", "StatelessIf", "Case", "StatelessCase", "EagerPyFunc", "PyFunc"}


def weighed_in_place_of_integers(group: Group) -> str:
    """The fix for an op with an integer argument: positions weighted by how far inside they are."""
    use = discrete_part(group.suspect).uses[0]
    edges = group.trace.ops[use.consumer].inputs
    # A variable that is written at these positions is read again later, where no integers are.
    taker = use.via if any(edge.op == use.via and edge.passes == "state" for edge in edges) else use.consumer
    call = call_of(group)
    size = bracketed(without_cast(call.subject)) if call is not None else "size"
    what = called(group.trace, taker) + place_of(group.trace, taker)
    if group.trace.ops[taker].type == "MatrixBandPart":
        given = call_at(group, taker)
        x = bracketed(given.arguments[0]) if given is not None else "x"
        return (
            f"{what} accepts only integers. Weight the elements by their distance from the diagonal: `rows, columns = "
            f"tf.range(tf.shape({x})[-2]), tf.range(tf.shape({x})[-1])`, `distance = tf.cast(tf.abs(rows[:, None] - "
            f"columns), tf.float32)`, then `{x} * tf.sigmoid(({size} - distance) / 0.5)`."
        )
    if group.trace.ops[taker].type == "Roll" and (given := call_at(group, taker)) is not None:
        shifted = [given.with_argument(1, "shift", at) for at in ("k", "k + 1")]
        return (
            f"{what} accepts only integers. Roll by both neighbouring integers and blend the results: `k = tf.cast("
            f"tf.floor({size}), tf.int32)`, `w = {size} - tf.floor({size})`, then `(1 - w) * "
            f"{shifted[0]} + w * {shifted[1]}`."
        )
    places = "positions" if "positions" not in size else "places"
    return (
        f"{what} accepts only integers there, so no gradient passes through it. Let `{size}` act on the values as "
        f"well, for example through a soft mask over positions, "
        f"`tf.sigmoid(({size} - tf.cast({places}, tf.float32)) / 0.5)`; or give it its own loss."
    )


def passed_around(group: Group) -> str:
    """Code that keeps the value of the conversion and back, and passes the gradient around it; empty if that is not
    known."""
    call = call_of(group)
    whole = _round_trip(group, call) if call is not None else ""
    if call is None or not whole:
        return ""
    x = call.subject
    if is_simple(x):
        return f"`{x} + tf.stop_gradient({whole} - {x})`"
    v = unused_name(group)
    return f"`{v} = {x}`, then `{v} + tf.stop_gradient({whole.replace(call.text, call.with_subject(v))} - {v})`"


def _round_trip(group: Group, there: Call) -> str:
    """The user's expression that converts to integers and then back to floats; empty if it cannot be determined."""
    source, takers = group.source, {use.consumer for use in discrete_part(group.suspect).uses}
    if source is None or len(takers) != 1:
        return ""
    [back] = takers
    again, second, name = source_of(group.trace, back), call_at(group, back), assigned_by(source.code)
    if again is None or group.trace.ops[back].type != "Cast":
        return ""
    if again == source:
        around = call_around(source.code, there)
        return around.text if around is not None else ""
    return second.with_subject(there.text) if second is not None and name and second.subject == name else ""
