"""Words for ops that cut a variable off."""

from __future__ import annotations

from tb_gradflow.analyse.causes.no_derivative import COUNTING, COUNTING_CALLS
from tb_gradflow.analyse.words.code import Call, bracketed, is_simple, without_cast
from tb_gradflow.analyse.words.fields import Template, fields
from tb_gradflow.analyse.words.names import (
    Group,
    Text,
    Writer,
    call_of,
    called,
    layer_of,
    namespace,
    place_of,
    short,
)

_NONE = "{they_get} {size}: "
_LESS = ("Less", "LessEqual")
_EQUAL = ("Equal", "NotEqual")


def rounding(group: Group) -> Text:
    names = fields(group)
    fix = f"pass the gradient straight through: {passed_through(group)}."
    if _is_in_loss(group):
        fix = f"leave `{names['whole']}` out of the loss and round in a metric, or " + fix
    around = " The ways around it cancel." if group.suspect.state.status == "zero" else ""
    message = _NONE + "{op} rounds, and a step function has no derivative." + around
    return Text(message.format_map(names), fix[0].upper() + fix[1:])


def passed_through(group: Group) -> str:
    """Code that keeps the value of the user's call and lets the gradient of its argument pass.

    An argument that is more than a name gets one, so that it is not computed twice (it may draw random numbers).
    """
    lib, call = namespace(group), call_of(group)
    if call is None:
        return f"`x + {lib}.stop_gradient({fields(group)['whole']} - x)`"
    if call.head == "//":
        return f"`v = {' / '.join(map(bracketed, call.arguments))}`, then `v + {lib}.stop_gradient({lib}.floor(v) - v)`"
    x = call.subject
    if is_simple(x):
        return f"`{x} + {lib}.stop_gradient({call.text} - {x})`"
    return f"`v = {x}`, then `v + {lib}.stop_gradient({call.with_subject('v')} - v)`"


def sign(group: Group) -> Text:
    message = Template(
        "{they_get} a gradient of exactly zero: the derivative of {op} is zero everywhere.",
        "Use a steep slope, `{lib}.tanh({bx} / 0.1)`, or pass the gradient straight through: ",
    )(group)
    return Text(message.message, message.fix + passed_through(group) + ".")


def any_op(group: Group) -> Text:
    text = Template(
        _NONE + "{op} is on the only way to the loss, and TensorFlow has no derivative for `{kind}`.",
        "Use an op with a derivative, give {fn} one with `tf.custom_gradient`, or, where shapes agree, pass it "
        "straight through: ",
    )(group)
    return Text(text.message, text.fix + passed_through(group) + ".")


def comparison(group: Group) -> Text:
    names = fields(group)
    against = " with positions" if _api(group).endswith("sequence_mask") else ""
    what = names["them"] if len(group.variables) == 1 else "what comes from them"
    message = _NONE + f"{{op}} only compares {what}{against}, and a comparison has no derivative."
    return Text(message.format_map(names), f"Use a soft step, for example `{soft_step(group)}`.")


def predicate(group: Group) -> Text:
    message = Template(
        _NONE + "{op} compares {them}, and the result only chooses a branch or ends a loop, which has no derivative.",
        "",
    )(group).message
    return Text(
        message, f"Blend both branches: `gate = {soft_step(group)}`, then `gate * inside + (1 - gate) * outside`."
    )


def soft_step(group: Group) -> str:
    """A smooth stand-in for the comparison on the user's line, with their names in it."""
    lib, call = namespace(group), call_of(group)
    if _api(group).endswith("sequence_mask"):
        return _soft_mask(call, short(group))
    left, right = ("x", short(group) if len(group.variables) == 1 else "threshold")
    if call and len(call.arguments) > 1:
        left, right = (bracketed(without_cast(side)) for side in call.arguments[:2])
    kind = group.op.type if group.op else ""
    if kind in _EQUAL:
        return f"{lib}.exp(-{lib}.square(({left} - {right}) / 0.5))"
    if kind in _LESS:
        left, right = right, left
    return f"{lib}.sigmoid(({left} - {right}) / 0.1)"


def _soft_mask(call: Call | None, name: str) -> str:
    """A smooth `tf.sequence_mask` of one length or of many: about 1 below it and about 0 from there on."""
    length = bracketed(without_cast(call.argument(0, "lengths") or name)) if call else name
    size = (call.argument(1, "maxlen") if call else "n") or f"tf.math.ceil(tf.reduce_max({length}))"
    return f"tf.sigmoid(({length}[..., None] - tf.range({size}, dtype=tf.float32) - 0.5) / 0.2)"


def index(group: Group) -> Text:
    name = _api(group).rpartition(".")[2]
    if name in ("argmax", "argmin"):
        return _soft_position(group, "-" if name == "argmin" else "")
    if "non_max_suppression" in name:
        return _chosen_boxes(group)
    fix = _INDEX_FIXES.get(name, _INTERPOLATE)
    if name == "top_k" and call_of(group) is None:
        fix = fix.replace("{whole}", "tf.math.top_k(x, k)")
    return Template(_NONE + "{op} turns values into positions, and a position has no derivative.", fix)(group)


def _chosen_boxes(group: Group) -> Text:
    call = call_of(group)
    scores = (call.argument(1, "scores") if call else None) or "scores"
    return Template(
        _NONE + "{op} chooses boxes by their places in a list, and a place has no derivative.",
        f"Let the scores into the loss by their values, `tf.reduce_mean(tf.nn.sigmoid({scores}) * loss_of_each_box)`, "
        "and choose boxes after the training.",
    )(group)


def _soft_position(group: Group, sign: str) -> Text:
    """Softmax along the axis that the user searches; a position can be made of it along the last one."""
    keras, call = namespace(group) == "keras.ops", call_of(group)
    axis = (call.argument(1, "axis") if call else None) or ("-1" if keras or call is None else "0")
    softmax = "keras.ops.softmax" if keras else "tf.nn.softmax"
    positions = (
        "keras.ops.sum(weights * keras.ops.arange(weights.shape[-1], dtype=weights.dtype), axis=-1)"
        if keras
        else "tf.reduce_sum(weights * tf.range(weights.shape[-1], dtype=weights.dtype), axis=-1)"
    )
    place = f", and where a position is needed `{positions}`" if axis in ("-1", "1") else ""
    return Template(
        _NONE + "{op} turns values into positions, and a position has no derivative.",
        f"Use soft weights: `weights = {softmax}({sign}{{bx}} / 0.1, axis={axis})`{place}.",
    )(group)


_INTERPOLATE = (
    "Interpolate between neighbours: `w = {bx} - {lib}.floor({x})`, then `(1 - w) * left + w * right`, with the "
    "integers used for indexing alone."
)
_INDEX_FIXES = {
    "top_k": "Use the values, which are differentiable, not the indices: `{whole}.values`.",
    "argsort": "Sort the values, which is differentiable: `tf.sort({x})`.",
}


def counting(group: Group) -> Text:
    kind = group.op.type if group.op else ""
    counts = kind in COUNTING or any(word in _api(group) for word in COUNTING_CALLS)
    why = "{op} counts" if counts else "{op} makes a yes or no of {them}, which is then counted"
    soft = _SOFT_YES if _api(group).endswith("sequence_mask") else _SOFT_COUNT
    fix = next((fix for kinds, fix in _COUNTED if kind in kinds), soft)
    names = fields(group) | {"step": soft_step(group)}
    message = _NONE + why + ", and a count changes in steps: it has no derivative."
    return Text(message.format_map(names), fix.format_map(names))


_SOFT_YES = "Count softly, with `{step}` in the place of each yes or no."
_SOFT_COUNT = (
    "Count softly, for a histogram with `tf.reduce_sum(tf.exp(-tf.square(({bx}[..., None] - centres) / width)), 0)`."
)
_COUNTED = (
    (
        ("ArgMax", "ArgMin"),
        "Train on `keras.losses.sparse_categorical_crossentropy(y, {x}, from_logits=True)` and count in a metric.",
    ),
    (("Round",), "Train on `keras.losses.binary_crossentropy(y, {x})` and count in a metric."),
    (("Equal", "NotEqual"), "Count softly: `tf.reduce_sum(1 - tf.exp(-tf.square({bx} / 0.1)))`."),
    ((*_LESS, "Greater", "GreaterEqual"), _SOFT_YES),
)


def sampling(group: Group) -> Text:
    """By comparing with uniform noise a coin is tossed; the other draws are among several classes."""
    call = call_of(group)
    if call is None or not call.is_operator:
        return Template(_DRAWS, _GUMBEL)(group)
    chance = next((each for each in call.arguments if "random" not in each), "p")
    fix = (
        f"Draw softly: `noise = tf.math.log(u) - tf.math.log(1 - u)`, then "
        f"`tf.sigmoid((tf.math.log({chance}) - tf.math.log(1 - {bracketed(chance)}) + noise) / 0.5)`."
    )
    return Text(_DRAWS.format_map(fields(group)), fix)


_DRAWS = _NONE + "{op} draws a discrete sample, and a draw has no derivative."
_GUMBEL = (
    "Draw softly: `u = tf.random.uniform(tf.shape({x}), 1e-6, 1 - 1e-6)`, then "
    "`tf.nn.softmax(({bx} - tf.math.log(-tf.math.log(u))) / 0.5)`, or weight the loss with the log-probability."
)


def integer(group: Group) -> Text:
    dtype = group.trace.variables[group.variables[0]].dtype
    if dtype.startswith(("float", "bfloat", "complex")):
        return Template(
            _NONE + "{op} makes an integer of what comes from {them}, and integers carry no gradient.",
            "Stay in floating point, or pass the gradient straight through: "
            "`{x} + tf.stop_gradient(tf.round({x}) - {bx})`.",
        )(group)
    return Template(
        _NONE + f"the tape follows floating numbers alone, and the type is `{dtype}`.",
        'Make it a float, `tf.Variable(..., dtype=tf.float32, name="{variable}")`, and cast where integers are needed.',
    )(group)


def _api(group: Group) -> str:
    return (group.op.api if group.op else None) or ""


def _is_in_loss(group: Group) -> bool:
    """Whether the culprit lies behind every layer."""
    name = group.op.name.lower() if group.op else ""
    return "loss" in name and not layer_of(group.trace, group.culprit)


def also_cut_by(group: Group) -> str:
    """A sentence on the other ops that cut the same variables off; empty if there are none."""
    if not group.others or group.verdict.cause == "second_order_missing":
        return ""
    trace = group.trace
    own = called(trace, group.culprit) + place_of(trace, group.culprit)
    seen = [
        each for each in dict.fromkeys(called(trace, op) + place_of(trace, op) for op in group.others) if each != own
    ]
    if not seen:
        return ""
    named = " and ".join(seen[:2])
    return f" {named[0].upper()}{named[1:]} would still cut {'it' if len(group.variables) == 1 else 'them'} off."


WRITERS: dict[str, Writer] = {
    "nondiff_rounding": rounding,
    "nondiff_comparison": comparison,
    "predicate_only": predicate,
    "nondiff_index": index,
    "nondiff_counting": counting,
    "integer_dtype": integer,
    "nondiff_sampling": sampling,
    "nondiff_sign": sign,
    "nondiff_op": any_op,
    "no_gradient_registered": Template(
        _NONE
        + "TensorFlow has none for {op}; asking raises `LookupError: gradient registry has no entry for: {kind}`.",
        "Move {fn} in front of the layers that learn, into the input pipeline, or give it a gradient with "
        "`tf.custom_gradient`.",
    ),
    "nondiff_op_input": Template(
        _NONE + "{op} has a gradient for other inputs, and none for the one that this goes into.",
        "Write this part out with arithmetic, for a resampling op the bilinear `(1 - w) * left + w * right`, or "
        "give {fn} a gradient with `tf.custom_gradient`.",
    ),
    "variable_assign": Template(
        _NONE + "{op} stores the value in a variable that is then read back, and no gradient passes through a store.",
        "Go on computing with the tensor itself, and store it afterwards: `y = f(value)`, then `state.assign(value)`.",
    ),
    "stop_gradient_misuse": Template(
        _NONE + "{op} is on every way to the loss.",
        'Use `{x}` without it; if it is meant, tell the recorder: `expected=["{pattern}"]`.',
    ),
}
