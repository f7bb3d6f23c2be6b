"""A variable is an integer, or its value is cast to integers."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.positions import soft_position
from tb_gradflow.analyse.edits.soft import soft_mask
from tb_gradflow.analyse.edits.straight_through import through_rounding
from tb_gradflow.analyse.edits.variables import floating
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import COPIES, ROUTING, is_float
from tb_gradflow.analyse.words.code import is_simple
from tb_gradflow.analyse.words.fields import SIZE, Template, fields, filled
from tb_gradflow.analyse.words.integers import only_as_integers, passed_around, weighed_in_place_of_integers
from tb_gradflow.analyse.words.names import Group, Text, api_of, call_of, unused_name

# These do not change the numbers in a tensor.
_REARRANGING = COPIES | ROUTING | {"Reshape", "Squeeze", "ExpandDims", "Transpose"}


def integer_variable(suspect: Suspect) -> Verdict | None:
    """The variable itself is an integer: the tape ignores it from the start."""
    variable = suspect.topology.trace.variables[suspect.state.variable]
    if is_float(variable.dtype):
        return None
    return integer_source(suspect) if variable.computed else Verdict("integer_dtype", "error")


def integer_source(suspect: Suspect) -> Verdict | None:
    """A gradient is requested for an integer tensor, which has none. Information if the tensor only selects among
    numbers that have one, as an index or a label does. An error if the step computes with it: as a float, it would have
    a gradient. A Keras loss converts labels to floats and back to integers: the op that finally uses them decides.
    """
    topology, place = suspect.topology, suspect.state.variable
    queue = [taker for reader in topology.readers[place] for taker, _ in topology.consumers[reader]]
    if not queue:
        return Verdict("output_not_used", "error")
    choosing: list[int] = []
    computing: list[int] = []
    made_float: list[int] = []
    for op in queue:  # grows while it is walked
        of_float = any(edge.op in made_float for edge in topology.trace.ops[op].inputs)
        if not any(is_float(tensor.dtype) for tensor in topology.trace.ops[op].outputs):
            taken = topology.consumers[op]
        elif suspect.type_of(op) == "Cast" or (of_float and suspect.type_of(op) in _REARRANGING):
            made_float.append(op)
            taken = topology.consumers[op]
            if not taken:
                computing.append(op)  # the loss itself
        else:
            (computing if of_float else choosing).append(op)
            taken = []
        queue.extend(taker for taker, _ in taken if taker not in queue)
    if choosing and not computing:
        return Verdict("integer_dtype", "info", choosing[0])
    return Verdict("integer_dtype", "error", made_float[0] if made_float else queue[0])


def integer_path(suspect: Suspect) -> Verdict | None:
    """A cast to integers on the path."""
    outputs = suspect.op.outputs
    discrete = bool(outputs) and not any(is_float(tensor.dtype) for tensor in outputs)
    return Verdict("integer_dtype", "error") if suspect.op.type == "Cast" and discrete else None


def _integer_tensor(group: Group) -> Text:
    """A tensor for which a gradient was requested. An index selects a number, and there is nothing between two
    indices."""
    dtype = group.trace.variables[group.variables[0]].dtype
    if group.verdict.severity == "info":
        return Template(
            "{they_get} no gradient: the `" + dtype + "` values only select which elements {op} takes, and an index or "
            "a label has no derivative. `None` is the correct result.",
            "Nothing to fix. Request the gradient of the tensor that is indexed instead.",
        )(group)
    return Template(
        "{they_get} no gradient: `tf.GradientTape` tracks only floating-point tensors, and the dtype is `"
        + dtype
        + "`.",
        _OF_NO_NUMBERS.get(
            dtype, "Create it as a float: `tf.constant(..., dtype=tf.float32)`, with `10.0` instead of `10`."
        ),
    )(group)


_OF_NO_NUMBERS = {
    "bool": "A boolean has no derivative. Compute a float between 0 and 1 instead, such as `tf.sigmoid(...)`, and "
    "multiply by it; or request the gradient of what it selects.",
    "string": "A string has no derivative. Request the gradient of the values that are computed from it.",
}


def _is_no_number(group: Group) -> bool:
    """Whether a gradient was requested for a tensor of booleans, or of strings."""
    tensor = group.trace.variables[group.variables[0]]
    return tensor.computed and tensor.dtype in _OF_NO_NUMBERS


def message_and_fix(group: Group) -> Text:
    if group.suspect.state.status == "integer" or _is_no_number(group):
        return _integer_tensor(group)
    dtype, names = group.trace.variables[group.variables[0]].dtype, fields(group)
    if not dtype.startswith(("float", "bfloat", "complex")):
        return Template(
            SIZE + f"`tf.GradientTape` tracks only floating-point variables, and the dtype is `{dtype}`.",
            'Make it a float, `tf.Variable(..., dtype=tf.float32, name="{variable}")`, and cast where integers are '
            "needed.",
        )(group)
    message = SIZE + "{op} converts a value computed from {them} to an integer, and integers carry no gradient."
    if only_as_integers(group):
        fix = weighed_in_place_of_integers(group)
        return Text(filled(message, names), fix[0].upper() + fix[1:])
    if labels := _cast_to_type_of(group):
        return Text(filled(message, names), labels)
    x = names["x"]
    through = passed_around(group)
    if not through and api_of(group).rpartition(".")[2] in ("cast", "to_int32", "to_int64"):
        through = f"`{x} + tf.stop_gradient(tf.round({x}) - {x})`"
        if not is_simple(x):
            v = unused_name(group)
            through = f"`{v} = {x}`, then `{v} + tf.stop_gradient(tf.round({v}) - {v})`"
    elif not through:
        through = f"`{x} + tf.stop_gradient(back - {x})`, where `back` is the integer value cast back to a float"
    return Text(filled(message, names), f"Stay in floating point, or use a straight-through estimator: {through}.")


def _cast_to_type_of(group: Group) -> str:
    """The fix for `tf.cast(p, y.dtype)` with integers in `y`: cast `y` instead, because TensorFlow does not subtract
    integers from floats. Empty for any other line, or if it uses attributes of an object."""
    call = call_of(group)
    other, _, attribute = ((call.argument(1, "dtype") if call is not None else None) or "").rpartition(".")
    if call is None or attribute != "dtype" or not other.isidentifier():
        return ""
    x = call.subject
    named, value = ("", x) if is_simple(x) else (f"`p = {x}`, ", "p")
    return (
        f"Cast the integers instead: {named}`{other} = {call.head}({other}, {value}.dtype)`, and use `{value}` as it "
        f"is instead of `{call.text}`."
    )


CAUSE = Cause(
    name="integer_dtype",
    meaning="the variable has an integer dtype, or its value is cast to integers on the path to the loss",
    severity="error",
    fix="stay in floating point",
    text=message_and_fix,
    verb="blocks it",
    edits=(
        floating,
        soft_mask,
        through_rounding,
        soft_position,
    ),
    quotes=("Stay in floating point, or use a straight-through estimator: ",),
)
