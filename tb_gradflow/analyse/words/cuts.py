"""Words for ops that cut a variable off."""

from __future__ import annotations

from dataclasses import replace

from tb_gradflow.analyse.causes.no_derivative import COMPARISON
from tb_gradflow.analyse.evidence.suspects import discrete_part
from tb_gradflow.analyse.graph.op_sets import is_float
from tb_gradflow.analyse.words.code import bracketed, is_simple
from tb_gradflow.analyse.words.fields import SIZE, ZERO, Template, fields
from tb_gradflow.analyse.words.names import (
    Group,
    Text,
    Writer,
    api_of,
    call_of,
    called,
    layer_of,
    namespace,
    place_of,
    source_of,
    unused_name,
)
from tb_gradflow.analyse.words.soft import soft_step
from tb_gradflow.analyse.words.whole import only_as_integers, passed_around, weighed_in_place_of_integers
from tb_gradflow.record.schema import Op, Trace


def rounding(group: Group) -> Text:
    names = fields(group)
    fix = f"pass the gradient straight through: {passed_through(group)}."
    discrete = discrete_part(group.suspect).ops
    compared = [op for op in discrete if group.trace.ops[op].type in COMPARISON]
    counting = [op for op in compared if (group.trace.ops[op].api or "").endswith(".repeat")]
    if counting:
        fix = (
            "give what is rounded a loss of its own in front of the rounding, against counts that are known: how often "
            f"{called(group.trace, counting[0])} repeats a row has no slope."
        )
    elif compared and any("count_nonzero" in (group.trace.ops[op].api or "") for op in discrete):
        # Soft answers are all other than zero, and whoever counts those is no further.
        total = "keras.ops.sum" if namespace(group) == "keras.ops" else "tf.reduce_sum"
        soft = soft_step(replace(group, culprit=compared[0]))
        fix = f"leave the rounding out, compare softly, and add up where you count: `{total}({soft})`."
    elif compared:
        fix = f"leave the rounding out and compare softly: `{soft_step(replace(group, culprit=compared[0]))}`."
    elif only_as_integers(group):
        fix = weighed_in_place_of_integers(group)
    elif _is_in_loss(group):
        fix = f"leave `{names['whole']}` out of the loss and round in a metric, or " + fix
    around = " The ways around it cancel." if group.suspect.state.status == "zero" else ""
    message = SIZE + "{op} rounds, and a step function has no derivative." + around
    return Text(message.format_map(names), fix[0].upper() + fix[1:])


def passed_through(group: Group) -> str:
    """Code that keeps the value of the user's call and lets the gradient of its argument pass.

    An argument that is more than a name gets one, so that it is not computed twice (it may draw random numbers).
    """
    lib, call, v = namespace(group), call_of(group), unused_name(group)
    if call is None:
        return f"`x + {lib}.stop_gradient({fields(group)['whole']} - x)`"
    if call.head == "//":
        quotient = " / ".join(map(bracketed, call.arguments))
        return f"`{v} = {quotient}`, then `{v} + {lib}.stop_gradient({lib}.floor({v}) - {v})`"
    x = call.subject
    if is_simple(x):
        return f"`{x} + {lib}.stop_gradient({call.text} - {x})`"
    return f"`{v} = {x}`, then `{v} + {lib}.stop_gradient({call.with_subject(v)} - {v})`"


def sign(group: Group) -> Text:
    message = Template(
        ZERO + "the derivative of {op} is zero everywhere.",
        "Use a steep slope, `{lib}.tanh({bx} / 0.1)`, or pass the gradient straight through: ",
    )(group)
    return Text(message.message, message.fix + passed_through(group) + ".")


def any_op(group: Group) -> Text:
    """A way to pass it straight through is offered only where what comes out has the shape and the type of what goes
    in."""
    if group.op is not None and group.op.type.endswith(("Dataset", "DatasetV2", "DatasetV3")):
        return Template(
            SIZE + "`tf.data` computes with {them} in {op}, and no gradient comes out of a dataset.",
            "Let datasets hand out data alone, and compute the loss from the batches: `for x, y in dataset` in a step "
            "that is no `tf.function`, which makes such an op of the loop; or one tensor with all rows.",
        )(group)
    message = SIZE + "{op} is on the only way to the loss, and TensorFlow has no derivative for `{kind}`."
    fix = _BETTER.get(group.op.type if group.op else "", "")
    if fix:
        return Template(message, fix)(group)
    text = Template(message, "Use ops with a derivative, or give {fn} one with `tf.custom_gradient`")(group)
    through = f"; or pass it straight through: {passed_through(group)}" if _is_of_the_same_kind(group) else ""
    return Text(text.message, text.fix + through + ".")


_BETTER = {
    "Range": "Number the places first and scale them: `start + step * tf.range(n, dtype=tf.float32)`.",
    "LinSpace": "Number the places first: `start + (stop - start) * tf.range(n, dtype=tf.float32) / (n - 1)`.",
    "RandomShuffle": "Shuffle positions and gather: `tf.gather({x}, tf.random.shuffle(tf.range(tf.shape({x})[0])))`.",
    "OneHot": "Build it of ones and zeros, and let the value come in afterwards: "
    "`hot = tf.one_hot(labels, classes)`, then `hot * on_value + (1.0 - hot) * off_value`.",
    "SparseSparseMaximum": "Compare them dense: `tf.maximum(tf.sparse.to_dense(a), tf.sparse.to_dense(b))`.",
    "SparseSparseMinimum": "Compare them dense: `tf.minimum(tf.sparse.to_dense(a), tf.sparse.to_dense(b))`.",
    "CTCBeamSearchDecoder": "Train on `tf.nn.ctc_loss(labels, logits, label_length, logit_length)`, and search for the "
    "best sequence in a metric.",
}


def _is_of_the_same_kind(group: Group) -> bool:
    trace, op = group.trace, group.op
    edges = [edge for edge in (op.inputs if op is not None else ()) if edge.op >= 0]
    if op is None or not op.outputs or not edges:
        return False
    given = trace.ops[edges[0].op].outputs
    if edges[0].output >= len(given):
        return False
    before, behind = given[edges[0].output], op.outputs[0]
    return before.shape is not None and (before.shape, before.dtype) == (behind.shape, behind.dtype)


def _integer_tensor(group: Group) -> Text:
    """A tensor that a gradient was requested for. An index says which number is taken, and no number lies between two
    of them."""
    dtype = group.trace.variables[group.variables[0]].dtype
    if group.verdict.severity == "info":
        return Template(
            "{they_get} no gradient: " + dtype + " numbers say which elements {op} takes, and an index or a label has "
            "no derivative. None is the right answer.",
            "Nothing to repair; request the gradient of what is indexed instead.",
        )(group)
    return Template(
        "{they_get} no gradient: a tape follows floating-point numbers alone, and the type is `" + dtype + "`.",
        _OF_NO_NUMBERS.get(
            dtype, "Make it a float where it is made: `tf.constant(..., dtype=tf.float32)`, with `10.0` for `10`."
        ),
    )(group)


_OF_NO_NUMBERS = {
    "bool": "A choice has no derivative. Make it a float between 0 and 1 where it is made, such as `tf.sigmoid(...)`, "
    "and multiply with that; or request the gradient of what is chosen.",
    "string": "A string has no derivative. Request the gradient of the numbers that are computed from it.",
}


def _is_no_number(group: Group) -> bool:
    """Whether a gradient was requested for a tensor of truth values, or of strings."""
    tensor = group.trace.variables[group.variables[0]]
    return tensor.computed and tensor.dtype in _OF_NO_NUMBERS


def integer(group: Group) -> Text:
    if group.suspect.state.status == "integer" or _is_no_number(group):
        return _integer_tensor(group)
    dtype, names = group.trace.variables[group.variables[0]].dtype, fields(group)
    if not dtype.startswith(("float", "bfloat", "complex")):
        return Template(
            SIZE + f"the tape follows floating numbers alone, and the type is `{dtype}`.",
            'Make it a float, `tf.Variable(..., dtype=tf.float32, name="{variable}")`, and cast where integers are '
            "needed.",
        )(group)
    message = SIZE + "{op} makes an integer of what comes from {them}, and integers carry no gradient."
    if only_as_integers(group):
        fix = weighed_in_place_of_integers(group)
        return Text(message.format_map(names), fix[0].upper() + fix[1:])
    if labels := _cast_to_type_of(group):
        return Text(message.format_map(names), labels)
    x = names["x"]
    through = passed_around(group)
    if not through and api_of(group).rpartition(".")[2] in ("cast", "to_int32", "to_int64"):
        through = f"`{x} + tf.stop_gradient(tf.round({x}) - {x})`"
        if not is_simple(x):
            v = unused_name(group)
            through = f"`{v} = {x}`, then `{v} + tf.stop_gradient(tf.round({v}) - {v})`"
    elif not through:
        through = f"`{x} + tf.stop_gradient(back - {x})`, where `back` is what is made of the integers again"
    return Text(message.format_map(names), f"Stay in floating point, or pass the gradient straight through: {through}.")


def _cast_to_type_of(group: Group) -> str:
    """The remedy for `tf.cast(p, y.dtype)` with integers in `y`: these are cast, as TensorFlow subtracts no integer
    from a floating number. Empty if the line is another, or speaks of what an object holds."""
    call = call_of(group)
    other, _, attribute = ((call.argument(1, "dtype") if call is not None else None) or "").rpartition(".")
    if call is None or attribute != "dtype" or not other.isidentifier():
        return ""
    x = call.subject
    named, value = ("", x) if is_simple(x) else (f"`p = {x}`, ", "p")
    return (
        f"Cast the integers, not what learns: {named}`{other} = {call.head}({other}, {value}.dtype)`, and `{value}` as "
        f"it is in the place of `{call.text}`."
    )


def _is_in_loss(group: Group) -> bool:
    """Whether the culprit lies behind every layer."""
    name = group.op.name.lower() if group.op else ""
    return "loss" in name and not layer_of(group.trace, group.culprit)


def also_cut_by(group: Group) -> str:
    """A sentence on the other ops that cut the same variables off, each on a way of its own; empty if there are none.

    What a function stops inside for itself, as a normalisation does in its variance, is nothing that anybody mends. Nor
    are the positions that an op hands to the culprit beside its values, as `tf.sparse.reorder` does.
    """
    if not group.others or group.verdict.cause in ("second_order_missing", "output_not_used"):
        return ""
    trace = group.trace
    inputs = trace.ops[group.culprit].inputs if group.culprit >= 0 else ()
    valued = {edge.op for edge in inputs if edge.op >= 0 and _has_positions_beside(trace.ops[edge.op], edge.output)}
    inside = {_call_scope(op) for op in trace.ops if _stops_inside(op)}
    others = [
        op
        for op in group.others
        if op not in valued and _call_scope(trace.ops[op]) not in inside and not _is_of_a_layer(trace, op)
    ]
    own = called(trace, group.culprit) + place_of(trace, group.culprit)
    seen = [each for each in dict.fromkeys(called(trace, op) + place_of(trace, op) for op in others) if each != own]
    if not seen:
        return ""
    ways = "On another way" if len(seen) == 1 else "On other ways"
    lets = "lets" if len(seen) == 1 else "let"
    return f" {ways} {' and '.join(seen[:2])} {lets} no gradient through either."


def _is_of_a_layer(trace: Trace, index: int) -> bool:
    """Whether a `stop_gradient` is none of the user's: it stands in a layer, and on no line of theirs."""
    op, source = trace.ops[index], source_of(trace, index)
    said = source is not None and "stop_gradient" in source.code
    return op.type == "StopGradient" and bool(layer_of(trace, index)) and not said


def _has_positions_beside(op: Op, output: int) -> bool:
    """Whether an op's output is floating, and another of its outputs is not."""
    floating = [is_float(tensor.dtype) for tensor in op.outputs]
    return output < len(floating) and floating[output] and not all(floating)


def _call_scope(op: Op) -> tuple[str, str | None]:
    """What tells the ops of one call from all others: the innermost name scope, and the function that was called."""
    return op.name.rpartition("/")[0], op.api


def _stops_inside(op: Op) -> bool:
    return op.type == "StopGradient" and "stop_gradient" not in (op.api or "stop_gradient")


def input_without_gradient(group: Group) -> Text:
    """On the only way, or on one of several: then a part of the gradient arrives, and it may point elsewhere."""
    fix = (
        "Write this part out with arithmetic, for a resampling op the bilinear `(1 - w) * left + w * right`, or "
        "give {fn} a gradient with `tf.custom_gradient`."
    )
    why = "{op} has a gradient for other inputs, and none for the one that this goes into."
    if group.op is not None and group.op.type.startswith("QuantizeAndDequantize"):
        return Template(
            ZERO + "{op} has a gradient for what it rounds; that for the ends of its range is zero for all values.",
            "Use `tf.quantization.fake_quant_with_min_max_vars({x}, low, high)`, whose ends learn from the values "
            "outside of them; or learn the size of a step: `v = {bx} / step`, then "
            "`step * (v + tf.stop_gradient(tf.round(v) - v))`.",
        )(group)
    if group.verdict.severity == "info":
        return Template("{they_get} a part of the gradient only: " + why, fix)(group)
    return Template(SIZE + why, fix)(group)


def unregistered(group: Group) -> Text:
    """Augmentation can be done before the model; what computes with weights or predictions cannot."""
    image = group.op is not None and (group.op.api or "").startswith("tf.image.")
    if "non_max_suppression" in api_of(group):
        return Template(
            SIZE + "TensorFlow has none for {op}, which chooses boxes; asking raises `LookupError: gradient registry "
            "has no entry for: {kind}`.",
            "Take the loss from the boxes and scores that go into {fn}, and leave it to inference.",
        )(group)
    instead = _HAVE_A_GRADIENT.get(group.op.type if group.op is not None else "")
    if instead:
        return Template(_UNREGISTERED, f"Compute the same with what has one: {instead}.")(group)
    if image and "glimpse" in api_of(group) and all(edge.input > 0 for edge in group.suspect.edges):
        return Template(
            _UNREGISTERED,
            "What comes from {them} decides where to look, and {fn} cannot learn that. Take the part out softly: "
            "weights `tf.nn.relu(1.0 - tf.abs(rows - positions[..., None]))` for rows, likewise for columns, and "
            "`tf.einsum('bir,bjc,brcd->bijd', by_row, by_column, images)`; or train the place by a policy gradient.",
        )(group)
    before = (
        "Move {fn} in front of the layers that learn, into the input pipeline, or give it" if image else "Give {fn}"
    )
    return Template(
        _UNREGISTERED,
        before
        + " a gradient with `tf.custom_gradient`"
        + ("." if image else ", or compute the same with functions that have one."),
    )(group)


_UNREGISTERED = (
    SIZE + "TensorFlow has none for {op}; asking raises `LookupError: gradient registry has no entry for: {kind}`."
)
_OF_ROWS = "`tf.math.unsorted_segment_max(values, indices[:, 0], rows)` for the largest of each row of a sparse matrix"
_OF_BINS = "`tf.math.unsorted_segment_sum(weights, values, size)`"
_HAVE_A_GRADIENT = {"SparseReduceMax": _OF_ROWS, "SparseReduceMaxSparse": _OF_ROWS, "DenseBincount": _OF_BINS}

WRITERS: dict[str, Writer] = {
    "nondiff_rounding": rounding,
    "integer_dtype": integer,
    "nondiff_sign": sign,
    "nondiff_op": any_op,
    "no_gradient_registered": unregistered,
    "nondiff_op_input": input_without_gradient,
}
