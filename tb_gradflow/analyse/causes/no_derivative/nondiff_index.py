"""A value is only used to find or to compute an index."""

from __future__ import annotations

from collections.abc import Callable

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.no_derivative.nondiff_counting import message_and_fix as counted
from tb_gradflow.analyse.edits.positions import probability_of_the_label, soft_position
from tb_gradflow.analyse.evidence.discrete import INDEX_INPUTS, SEARCHING, are_probabilities, handed_on
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict, discrete_part
from tb_gradflow.analyse.words.code import bracketed, is_simple
from tb_gradflow.analyse.words.fields import SIZE, Template, fields
from tb_gradflow.analyse.words.names import Group, Text, api_of, call_of, layer_of, namespace
from tb_gradflow.analyse.words.order import in_order, largest
from tb_gradflow.analyse.words.tables import looked_up


def rule(suspect: Suspect) -> Verdict | None:
    """A position is searched, or a number is converted to an integer index."""
    if suspect.op.type in SEARCHING:
        return Verdict("nondiff_index", "error")
    part = discrete_part(suspect)
    handed = handed_on(suspect, part)
    indexes = any(
        INDEX_INPUTS.get(suspect.type_of(use.consumer)) == use.input for use in part.uses if use.via in handed
    )
    return Verdict("nondiff_index", "error") if indexes else None


_OF_OPS = {
    "ArgMax": "argmax",
    "ArgMin": "argmin",
    "LowerBound": "searchsorted",
    "UpperBound": "searchsorted",
    "MaxPoolWithArgmax": "max_pool_with_argmax",
}


def message_and_fix(group: Group) -> Text:
    # For functions that are not public in TensorFlow, such as those of an old Keras backend, the op gives the name.
    kind = group.op.type if group.op else ""
    name = _OF_OPS.get(kind) or api_of(group).rpartition(".")[2]
    if group.suspect.state.beside:
        return Template(SIZE + "{op} turns values into indices, and an index has no derivative.", _PASSED_ON)(group)
    if kind in ("TopK", "TopKV2") and name not in _INDEX_FIXES:  # called in a package: this op sorts too
        name = "top_k"
    if name in ("argmax", "argmin") and _is_compared_in_loss(group):
        return counted(group)
    if name in ("argmax", "argmin"):
        return _soft_position(group, "-" if name == "argmin" else "")
    if "non_max_suppression" in name:
        return _chosen_boxes(group)
    if group.source is None and _is_in_embedding(group):
        return Template(
            "{they_get} no gradient: {op} converts values computed from {them} to integers to look up rows, and a row "
            "index has no derivative.",
            "An `Embedding` expects integer ids: give it the ids of the input directly. For the output of another "
            "layer, use a `Dense` layer instead.",
        )(group)
    writer = _weighed if kind == "Bucketize" else _INDEX_FIXES.get(name, _between)
    return Template(SIZE + "{op} turns values into indices, and an index has no derivative.", writer(group))(group)


_PASSED_ON = (
    "Nothing to fix if that term is not meant to train {them}. Otherwise, pass its gradient on to what the choice was "
    "made from: `x + tf.stop_gradient(chosen - x)`, if what was looked up, `chosen`, has the shape of `x`."
)


def _is_in_embedding(group: Group) -> bool:
    name = layer_of(group.trace, group.culprit)
    return bool(name) and any(layer.name == name and layer.type == "Embedding" for layer in group.trace.layers)


def _is_compared_in_loss(group: Group) -> bool:
    """Whether classes are chosen to count how many are right."""
    equal = any(group.suspect.type_of(op) in ("Equal", "NotEqual") for op in discrete_part(group.suspect).ops)
    return (
        equal and group.op is not None and "loss" in group.op.name.lower() and not layer_of(group.trace, group.culprit)
    )


def _weighed(group: Group) -> str:
    """A bucket is an index into a table, nearly always."""
    softmax = "{lib}.softmax" if namespace(group) == "keras.ops" else "{lib}.nn.softmax"
    return (
        "Weight the rows of the table by how close the value is to the middle of each bucket: "
        f"`w = {softmax}(-{{lib}}.square((x[..., None] - middles) / width))`, then `{{lib}}.matmul(w, table)`."
    )


def _below(group: Group) -> str:
    """A soft count of the edges below each value, which is the position of the value among them."""
    call = call_of(group)
    edges = (call.argument(0, "sorted_sequence") if call else None) or "edges"
    values = (call.argument(1, "values") if call else None) or "values"
    row = looked_up(group)
    if row is not None and row.rank == 1:
        table = bracketed(row.table)
        return (
            f"Replace `{row.call.text}` with a sum of soft steps: `steps = "
            f"tf.sigmoid(({bracketed(values)}[..., None] - {bracketed(edges)}) / 0.1)`, then `{table}[0] + "
            f"tf.reduce_sum(steps * ({table}[1:] - {table}[:-1]), axis=-1)`."
        )
    return (
        "Use a soft count of the edges below each value: "
        f"`tf.reduce_sum(tf.sigmoid(({bracketed(values)}[..., None] - {bracketed(edges)}) / 0.1), axis=-1)`."
    )


def _between(group: Group) -> str:
    x = fields(group)["x"]
    named = "" if is_simple(x) else f"`p = {x}`, `"
    p = x if is_simple(x) else "p"
    start = f"{named}w = {p} - {{lib}}.floor({p})`" if named else f"`w = {p} - {{lib}}.floor({p})`"
    row = looked_up(group)
    if row is None:
        return (
            f"Interpolate between neighbours: {start}, then `(1 - w) * low + w * high`, where `low` and `high` are the "
            f"elements at the integers below and above; use the integers only for indexing."
        )
    size = f"{bracketed(row.table)}.shape[0]"
    if row.keras:
        place, following = f"i = keras.ops.cast(keras.ops.floor({p}), 'int32')", f"keras.ops.minimum(i + 1, {size} - 1)"
    else:
        place, following = f"i = tf.cast(tf.floor({p}), tf.int32)", f"tf.minimum(i + 1, {size} - 1)"
    weight = "w" if row.rank == 1 else f"w[..., {', '.join(['None'] * (row.rank - 1))}]"
    low, high = (row.call.with_argument(1, "indices", each) for each in ("i", following))
    return (
        f"Replace `{row.call.text}` with an interpolation between neighbours: {start}, `{place}`, then `(1 - {weight}) "
        f"* {low} + {weight} * {high}`."
    )


def _chosen_boxes(group: Group) -> Text:
    call = call_of(group)
    scores = (call.argument(1, "scores") if call else None) or "scores"
    return Template(
        SIZE + "{op} selects boxes by their indices, and an index has no derivative.",
        f"Train the scores directly: `tf.nn.sigmoid_cross_entropy_with_logits(labels=on, logits={scores})`, "
        "where `on` marks the boxes that cover an object (`keras.losses.binary_crossentropy` if they are "
        "probabilities), and select boxes only at inference.",
    )(group)


def _soft_position(group: Group, sign: str) -> Text:
    """A softmax along the axis that the user searches; along the last axis it also gives a position."""
    keras, call = namespace(group) == "keras.ops", call_of(group)
    axis = (call.argument(1, "axis") if call else None) or ("-1" if keras or call is None else "0")
    softmax = "keras.ops.softmax" if keras else "tf.nn.softmax"
    positions = (
        "keras.ops.sum(weights * keras.ops.arange(weights.shape[-1], dtype=weights.dtype), axis=-1)"
        if keras
        else "tf.reduce_sum(weights * tf.range(weights.shape[-1], dtype=weights.dtype), axis=-1)"
    )
    place = f"; where you need an index, use `{positions}`" if axis in ("-1", "1") else ""
    start = "Use soft weights: "
    if (row := looked_up(group)) is not None:
        start = f"Replace `{row.call.text}` with a weighted sum of the rows: "
        place = (
            f", then {row.weighed('weights')}; or keep the row and copy its gradient straight to the value that was "
        )
        place += "looked up, as a VQ-VAE does"
    elif _is_used_as_a_number(group):
        kind = ("min" if sign else "max") if keras else ("reduce_min" if sign else "reduce_max")
        lib = "keras.ops" if keras else "tf"
        most = "smallest" if sign else "largest"
        place += f"; if you need the {most} value, not its index, use `{lib}.{kind}({{x}}, axis={axis})`"
    soft = "{x}" if not sign and are_probabilities(group.suspect) else f"{softmax}({sign}{{bx}} / 0.1, axis={axis})"
    return Template(
        SIZE + "{op} turns values into indices, and an index has no derivative.",
        f"{start}`weights = {soft}`{place}.",
    )(group)


def _is_used_as_a_number(group: Group) -> bool:
    """Whether the index itself, cast to floating point, goes into the loss."""
    part = discrete_part(group.suspect)
    kinds = {group.trace.ops[op].type for op in part.ops}
    users = {group.trace.ops[use.consumer].type for use in part.uses}
    return kinds <= {"ArgMax", "ArgMin", "Cast"} and users == {"Cast"}


def _pooled(group: Group) -> str:
    return (
        "Use the maxima, the first output of {fn}, which are differentiable, not their indices. If you need the "
        "location, use the mean location in each window, weighted by a softmax of its values."
    )


def _resampled(group: Group) -> str:
    call = call_of(group)
    if call is None or group.op is None or group.op.type != "Round":
        return _between(group)
    given = call.argument(0, "inputs") or "inputs", call.argument(1, "coordinates") or "coordinates"
    return f"Interpolate between neighbours, with `order=1`: `{call.head}({', '.join(given)}, order=1)`."


_INDEX_FIXES: dict[str, Callable[[Group], str]] = {
    "top_k": largest,
    "argsort": in_order,
    "searchsorted": _below,
    "max_pool_with_argmax": _pooled,
    "map_coordinates": _resampled,
}


CAUSE = Cause(
    name="nondiff_index",
    meaning="argmax, argsort or the indices of top-k; or a value converted to an integer to index with",
    severity="error",
    fix="softmax weights; top-k's values; interpolation",
    text=message_and_fix,
    verb="blocks it",
    edits=(soft_position, probability_of_the_label),
    quotes=(
        "Use soft ranks: ",
        "Use soft weights: ",
    ),
)
